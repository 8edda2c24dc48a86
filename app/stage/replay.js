// The page of a replay: it plays the frames that it holds.
const $ = id => document.getElementById(id), RATE = 30;
const asked = new URLSearchParams(location.search).get("theme");
const dark = asked ? asked === "dark" : REPLAY.dark;
document.documentElement.dataset.theme = dark ? "dark" : "light";
document.documentElement.style.colorScheme = dark ? "dark" : "light";
document.title = `${REPLAY.scene.cards.map(card => card.title).join(", ")}: a replay of Steinlab`;
const player = {at: 0, playing: false, frames: []};
const model = new StageModel({marks: REPLAY.marks, show: REPLAY.show, dark}, message => {
  const key = {space: () => play(!player.playing), right: () => go(player.at + 1, true), left: () => go(player.at - 1, true), r: () => go(0, true)};
  key[message.key]?.();
});
function go(at, pause = false) {
  if (pause) play(false);
  player.at = Math.min(Math.max(at, 0), player.frames.length - 1);
  const frame = player.frames[Math.floor(player.at)];
  model.tell("msg:custom", frame);
  $("at").value = player.at;
  $("step").textContent = `step ${clockOf(frame)}`;
}
function play(on) {
  if (on && player.at >= player.frames.length - 1) player.at = 0;
  player.playing = on;
  $("play").textContent = on ? "Pause" : "Play";
}
let before = 0;
function turn(now) {
  requestAnimationFrame(turn);
  const by = Math.min(2, (now - before) * RATE / 1000);
  before = now;
  if (!player.playing || document.hidden) return;
  go(player.at + by);
  if (player.at >= player.frames.length - 1) play(false);
}
decoded(REPLAY).then(frames => {
  player.frames = frames;
  $("at").max = frames.length - 1;
  model.starting = frames[0][2];
  render({model, el: $("stage")});
  model.scene = REPLAY.scene;
  go(0);
  play(!matchMedia("(prefers-reduced-motion: reduce)").matches);
  requestAnimationFrame(turn);
});
$("play").onclick = () => play(!player.playing);
$("at").oninput = () => go(Number($("at").value), true);
if (parent !== window) new ResizeObserver(() => parent.postMessage({steinlab: {height: document.body.scrollHeight}}, "*")).observe(document.body);
// For `steinlab record`: the film, or its pictures, as data URLs.
player.pictures = size => steinlab.shoot(player.frames, size, picturesOf);
player.film = async size => {
  const reader = new FileReader(), read = new Promise(done => { reader.onload = done; });
  reader.readAsDataURL(await steinlab.shoot(player.frames, size));
  await read;
  return [reader.result];
};
window.replay = player;
