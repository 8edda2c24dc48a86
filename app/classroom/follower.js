// The page of a follower: the lecturer's stage, and the question that stands.
const $ = id => document.getElementById(id), AGAIN_AFTER = [400, 5000], EIGHTH = 8;
const MINE = "steinlab.class", NAMED = "steinlab.name";
const ENDS = {4404: "There is no class with this code. Ask your lecturer for it again.", 4429: "Too many wrong codes came from here. Wait a minute, then try again.",
  4503: "The class is full.", 4408: "This page sent what the server does not take. Load it again."};
const base = location.pathname.replace(/\/class(\/.*)?$/, ""), code = (location.pathname.match(/\/class\/([^/]+)/)?.[1] ?? "").toUpperCase().replaceAll("-", "");

// What this browser remembers: its own name for the server, which no other follower knows.
function kept(key, make) {
  try {
    const found = localStorage.getItem(key) ?? make();
    localStorage.setItem(key, found);
    return found;
  } catch {
    return make();
  }
}
const random = () => [...crypto.getRandomValues(new Uint8Array(16))].map(byte => byte.toString(16).padStart(2, "0")).join("");
const who = kept(MINE, random);

// ---- the stage

const state = {}, waiting = [];
let model = null, see = {}, socket = null, pause = AGAIN_AFTER[0], taken = 0, ended = false, dark = false;

// Which cards and numbers of a scene the lecturer shows.
const cardsOf = scene => scene.cards.map((_, k) => k).filter(k => !see.cards || see.cards.includes(k));
const numbersOf = card => card.metrics.map((_, k) => k).filter(k => !see.numbers || see.numbers.includes(card.metrics[k].name));

function sceneOf(scene) {
  if (!scene?.cards) return {};
  return {...scene, cards: cardsOf(scene).map(k => ({...scene.cards[k], edit: false, metrics: numbersOf(scene.cards[k]).map(i => scene.cards[k].metrics[i])}))};
}

// A frame with the same cards and numbers.
function frameOf(frame, scene) {
  if (!scene?.cards || (!see.cards && !see.numbers)) return frame;
  const cards = cardsOf(scene), parts = [];
  for (let p = 0, o = 3; p < frame[1]; p++) {
    const [count, , , , k, points] = frame.subarray(o, o + 6), rest = 2 * points + 9 * count;
    if (cards.includes(p)) {
      const numbers = numbersOf(scene.cards[p]), head = frame.slice(o, o + 6);
      head[4] = numbers.length;
      parts.push(head, Float32Array.from(numbers, i => frame[o + 6 + i]), frame.subarray(o + 6 + k, o + 6 + k + rest));
    }
    o += 6 + k + rest;
  }
  const made = new Float32Array(3 + parts.reduce((n, part) => n + part.length, 0));
  made.set([frame[0], parts.length / 3, frame[2]]);
  parts.reduce((at, part) => { made.set(part, at); return at + part.length; }, 3);
  return made;
}

const kinds = {Stage: {render, StageModel}}, TRAINED = ["scene", "points", "nuts"];
let kind = "", asking = "";

// Another kind of stage brings its own code.
function begin(wanted) {
  const known = kinds[wanted] ?? window.steinkinds?.[wanted];
  if (!known) {
    if (asking === wanted) return;
    asking = wanted;
    const script = document.createElement("script");
    script.src = `${base}/class/kind/${wanted}.js`;
    script.onload = () => showState({...state});
    document.body.append(script);
    return;
  }
  model?.tell("remove");
  $("stage").replaceChildren();
  $("stage").className = "stage";
  const values = wanted === "Stage" ? {marks: state.marks ?? {}, show: state.show ?? {}} : Object.fromEntries(TRAINED.map(name => [name, state[name]]));
  kind = wanted;
  model = new known.StageModel({...values, dark}, () => {});
  known.render({model, el: $("stage"), still: true});
}

function showState(news) {
  Object.assign(state, news);
  see = state.see ?? {};
  const away = state.away ?? "";
  $("away").textContent = away;
  $("shown").hidden = Boolean(away);
  if (away) return;
  const fresh = kind !== state.kind;
  if (fresh) begin(state.kind);
  if (kind !== state.kind) return;  // its code is on its way
  if (fresh) news = state;
  $("caption").innerHTML = state.caption ?? "";
  $("legend").innerHTML = state.legend ?? "";
  $("knobs").textContent = (state.knobs ?? []).filter(([name]) => !see.knobs || see.knobs.includes(name)).map(([, text]) => text).join(" \u00b7 ");
  if ("lecture" in news) model.lecture = news.lecture && innerWidth > 900;
  if (kind !== "Stage") {
    for (const name of TRAINED) if (name in news) model[name] = news[name];
    if (fresh) early.splice(0).forEach(takeFrame);
    return;
  }
  for (const name of ["marks", "show", "status", "alarm", "starting"]) {
    if (name in news) model[name] = news[name];
  }
  if ("scene" in news || "see" in news) model.scene = sceneOf(state.scene);
}

const early = [];  // frames of a stage whose code is on its way
function takeFrame(frame) {
  if (state.away) return;
  if (kind !== state.kind) early.push(frame);
  else if (model) model.tell("msg:custom", kind === "Stage" ? frameOf(frame, state.scene) : frame);
  early.splice(0, early.length - 4);
}

// ---- the connection

const say = message => socket?.readyState === WebSocket.OPEN && socket.send(JSON.stringify(message));

function connect() {
  taken = 0;
  socket = new WebSocket(`${location.origin.replace(/^http/, "ws")}${base}/class/${code}/socket?who=${who}`);
  socket.binaryType = "arraybuffer";
  socket.onmessage = ({data}) => {
    if (typeof data === "string") return hear(JSON.parse(data));
    taken += 1;
    if (taken % EIGHTH === 0) say({ack: taken});
    takeFrame(new Float32Array(data));
  };
  socket.onclose = ({code: why}) => {
    if (ended) return;
    if (ENDS[why]) return leave(ENDS[why]);
    $("link").textContent = "The connection is lost. This page joins again by itself.";
    setTimeout(connect, pause * (0.5 + Math.random()));  // a whole class does not come back at one moment
    pause = Math.min(2 * pause, AGAIN_AFTER[1]);
  };
}

function leave(text) {
  ended = true;
  $("problem").textContent = text;
  $("link").textContent = "";
  $("main").hidden = true;
  $("enter").hidden = false;
}

function hear(message) {
  if (message.end) return leave("The class has ended. Nothing of it is kept.");
  pause = AGAIN_AFTER[0];
  $("main").hidden = false;
  $("link").textContent = "";
  if (message.state) showState(message.state);
  if ("mine" in message && !("answered" in message)) remember(message.mine);
  if ("question" in message) showQuestion(message.question);
  if ("answered" in message) confirmed(message);
  if (message.run) makeRun(message.run);
}

// ---- the question: an answer waits here until the server has it

let question = null, field = null, mine = null, pending = null, worker = null;

function remember(told) {
  mine = told;
  if (pending && (!told || told.id !== pending.to || told.value !== pending.answer)) say(pending);
}

function showQuestion(told) {
  const fresh = told?.id !== question?.id;
  question = told;
  if (fresh) worker?.terminate();
  $("question").hidden = !told;
  if (!told) { pending = mine = null; return; }
  if (fresh) {
    if (mine?.id !== told.id) mine = null;
    if (pending?.to !== told.id) pending = null;
    askIt(told);
  }
  drawQuestion();
}

function askIt(told) {
  const host = $("question"), act = part("button", {type: "button", className: "primary", textContent: "Send", disabled: true});
  const name = part("input", {className: "as", placeholder: "Your name, if you like", ariaLabel: "Your name, if you like", maxLength: 30, value: kept(NAMED, () => "")});
  const problem = part("p", {className: "problem", role: "alert"}), said = part("p", {className: "said", role: "status"});
  const ready = (on, text = "") => { act.disabled = !on; problem.textContent = text; };
  field = (told.choices.length ? choiceField : numberField)({...told, answer: told.outcome}, ready, `class-${told.id}`);
  Object.assign(field, {act, problem, said, name, picture: part("div", {}), acts: part("div", {className: "acts"}, ...field.beside, name, act)});
  act.addEventListener("click", () => {
    try { localStorage.setItem(NAMED, name.value); } catch { /* for this visit only */ }
    pending = {answer: field.value(), to: told.id, name: name.value, own: typeof Worker === "function"};
    field.said.textContent = "On its way \u2026";
    say(pending);
  });
  host.replaceChildren(part("h2", {textContent: told.ask}), ...field.nodes, field.acts, problem, said, field.picture);
  if (mine) field.show(mine.value);
}

const worded = value => question.choices.length ? `\u201c${question.choices[value]}\u201d` : `${plain(value)}${question.unit ? ` ${question.unit}` : ""}`;

function drawQuestion() {
  const {frozen, revealed, gathered} = question, over = frozen || revealed;
  for (const node of [...field.nodes, field.acts]) node.hidden = over;
  const came = question.outcome !== null && revealed ? ` It is ${worded(question.outcome)}.` : "";
  const own = mine?.result === null || mine?.result === undefined ? "" : ` In your run the variance is ${plain(mine.result)}. ${mine.said}`;
  if (mine) field.said.textContent = `${question.knob ? "You chose" : "You said"} ${worded(mine.value)}.${came}${own}`;
  else if (over) field.said.textContent = revealed ? `You did not answer.${came}` : "The lecturer takes no more answers.";
  if (question.knob && mine && own === "" && mine.said) field.said.textContent += ` ${mine.said}`;
  else if (question.knob && mine && own === "") field.said.textContent += " Your run is being computed \u2026";
  if (!mine && !over && !pending) field.said.textContent = "";
  field.act.textContent = mine ? "Send again" : "Send";
  field.picture.hidden = !(revealed && gathered);
  if (revealed && gathered) drawGathered(field.picture, question, gathered, Math.min(640, $("question").clientWidth - 36), dark);
}

function confirmed({answered, problem, mine: told}) {
  if (answered !== question?.id) return;
  if (pending?.to === answered) pending = null;
  if (told) mine = told;
  field.problem.textContent = problem ?? "";
  if (problem) field.said.textContent = "";
  drawQuestion();
}

// ---- the own run of this follower: made here, beside the page. A run that cannot be made here is left to the server.

function makeRun({script, args, limits, to, of}) {
  worker?.terminate();
  worker = new Worker(`${base}/class/${code}/run/${script}.js`);
  worker.onmessage = ({data: {ended, result}}) => say({ended, result, to, of});
  worker.onerror = () => say({ended: 0, result: 0, to, of});
  worker.postMessage({args, limits});
}

// ---- the page

function darken(on) {
  dark = on;
  document.documentElement.dataset.theme = document.documentElement.style.colorScheme = on ? "dark" : "light";
  $("theme").textContent = on ? "Light" : "Dark";
  if (model) model.dark = on;
  if (question) drawQuestion();
}
const asked = new URLSearchParams(location.search).get("theme");
$("theme").onclick = () => darken(!dark);
$("enter").onsubmit = event => {
  event.preventDefault();
  const typed = $("code").value.toUpperCase().replace(/[^0-9A-Z]/g, "");
  if (typed) location.href = `${base}/class/${typed}`;
};
darken(asked ? asked === "dark" : matchMedia("(prefers-color-scheme: dark)").matches);
addEventListener("resize", () => question && drawQuestion());
if (code) {
  $("class").textContent = `class ${code.slice(0, 4)}-${code.slice(4)}`;
  $("code").value = code;
  connect();
} else $("enter").hidden = false;
