// The page of a replay: it plays the frames that it holds.
const $ = id => document.getElementById(id), RATE = REPLAY.rate ?? 30;
const asked = new URLSearchParams(location.search).get("theme");
const {scene, ...rest} = REPLAY, named = scene.cards ?? scene.panels ?? scene.rows.flatMap(row => row.panels);
document.title = `${[...new Set(named.map(({title, label}) => title ?? label))].join(", ")}: a replay of Steinlab`;
$("legend").innerHTML = REPLAY.legend ?? "";
const player = {at: 0, playing: false, frames: []};
const model = new StageModel(rest, message => {
  const key = {space: () => play(!player.playing), right: () => go(player.at + 1, true), left: () => go(player.at - 1, true), r: () => go(0, true)};
  key[message.key]?.();
});
function darken(dark) {
  document.documentElement.dataset.theme = document.documentElement.style.colorScheme = dark ? "dark" : "light";
  model.dark = dark;
}
darken(asked ? asked === "dark" : REPLAY.dark);
function go(at, pause = false) {
  if (pause) play(false);
  player.at = Math.min(Math.max(at, 0), player.frames.length - 1);
  const now = Math.floor(player.at);
  for (const frame of shownAt(player.frames, now)) model.tell("msg:custom", frame);
  $("at").value = player.at;
  $("step").textContent = momentOf(player.frames[now]);
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
  render({model, el: $("stage"), still: true});
  model.scene = scene;
  go(0);
  play(!matchMedia("(prefers-reduced-motion: reduce)").matches);
  requestAnimationFrame(turn);
});
$("play").onclick = () => play(!player.playing);
$("at").oninput = () => go(Number($("at").value), true);
addEventListener("message", ({data, source}) => {  // the page that this one is part of says its theme
  const theme = data?.steinlab?.theme;
  if (source === parent && parent !== window && ["light", "dark"].includes(theme)) darken(theme === "dark");
});
if (parent !== window) new ResizeObserver(() => parent.postMessage({steinlab: {height: document.body.scrollHeight}}, "*")).observe(document.body);
// For `steinlab record`: the film, or its pictures, as data URLs.
const shoot = (...how) => (window.steinlab ?? window.steinpanels ?? window.steinchart).shoot(...how);
player.pictures = size => shoot(player.frames, size, picturesOf);
player.film = async size => {
  const reader = new FileReader(), read = new Promise(done => { reader.onload = done; });
  reader.readAsDataURL(await shoot(player.frames, size));
  await read;
  return [reader.result];
};
window.replay = player;
