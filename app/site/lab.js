// The page of the site: its controls, its link, and the loop that plays a run on a stage.
const $ = (id) => document.getElementById(id), { index } = steinlab;
const KNOBS = ["method.particles", "method.alpha", "method.step_size", "bandwidth.factor"], CHOICES = ["kernel.name", "bandwidth.rule"];
const OTHERS = ["target", "methods", "seed", "ui", "theme"];  // of a link
const MOST = 3;  // methods side by side
const SHORT = ["method.particles", "method.alpha"];  // the sliders of an embedded page
const asked = new URLSearchParams(location.search), short = asked.get("ui") === "min";
let setup = read(location.search), run = null, playing = false, number = 0, loading = 0;

const model = new StageModel(
  { scene: {}, marks: index.marks, show: index.show, lit: "", lecture: false, slot: "", starting: 0, status: "", alarm: "",
    embedded: false, dark: false },
  (message) => {
    if (message.add || message.remove !== undefined) change(() => run.edit(message));
    if (message.key) ({ space: toggle, right: one, left: back, r: restart })[message.key]?.();
  });

// ---- the link: the same names as the app's

function read(text) {
  const query = new URLSearchParams(text), values = {}, problems = [];
  const of = (name, known, usual) => {
    const value = query.get(name);
    if (value === null || known.includes(value)) return value ?? usual;
    problems.push(`${name} = ${value}; here: ${known.join(", ")}.`);
    return usual;
  };
  const target = of("target", index.targets.map((t) => t.name), index.usual.target);
  const named = (query.get("methods") ?? index.usual.methods.join()).split(","), there = index.methods.map((m) => m.name);
  const methods = [...new Set(named)].filter((name) => there.includes(name)).slice(0, MOST);
  if (methods.length < named.length) problems.push(`methods = ${named}; here: up to ${MOST} of ${there.join(", ")}.`);
  const within = (name, { value: usual, low, high, scale }) => {
    const value = query.has(name) ? Number(query.get(name) || NaN) : usual, whole = scale === "integer";
    if (value >= low && value <= high && (!whole || Number.isInteger(value))) return value;
    problems.push(`${name} = ${query.get(name)}; allowed: ${whole ? "whole numbers, " : ""}${low} to ${high}.`);
    return usual;
  };
  for (const name of KNOBS) values[name] = within(name, index.knobs[name]);
  for (const name of CHOICES) {
    const { choices, value } = index.knobs[name];
    values[name] = choices.findIndex((c) => c.name === of(name, choices.map((c) => c.name), choices[value].name));
  }
  const seed = within("seed", { value: 0, low: 0, high: 2 ** 32 - 1, scale: "integer" });
  const strangers = [...query.keys()].filter((name) => ![...KNOBS, ...CHOICES, ...OTHERS].includes(name));
  if (strangers.length) problems.push(`${strangers.join(", ")}: only the app reads this; here it has no effect.`);
  return { target, methods: methods.length ? methods : index.usual.methods, values, problems, seed };
}

function link() {
  const query = new URLSearchParams({ target: setup.target, methods: setup.methods.join() });
  for (const name of [...KNOBS, ...CHOICES]) {
    const { value, choices } = index.knobs[name], now = run?.values[name] ?? setup.values[name];
    if (now !== value) query.set(name, choices ? choices[now].name : String(now));
  }
  if (setup.seed) query.set("seed", String(setup.seed));
  for (const name of ["ui", "theme"]) if (asked.has(name)) query.set(name, asked.get(name));
  return query.toString().replaceAll("%2C", ",");
}

// ---- files: each is a script that gives its content, which works from a disk, too

const given = steinlab.given, waiting = {};
steinlab.give = (name, what) => { given[name] = what; waiting[name]?.(what); };
const file = (name) => given[name] ?? new Promise((done, fail) => {
  waiting[name] = done;
  const script = document.createElement("script");
  script.src = `${name}.js`;
  script.onerror = () => fail(new Error(`${name}.js could not be loaded.`));
  document.head.append(script);
});

// Loads what the setup needs, and begins a run; or goes on with the present one if it only needs more room.
async function load(goOn = false) {
  const mine = ++loading, { target, methods, values } = setup;
  model.status = "loading …";
  try {
    const capacity = index.capacities.find((c) => c >= values["method.particles"]);
    const [scene, ...programs] = await Promise.all([file(`scenes/${target}`), ...methods.map((name) => file(`programs/${target}-${name}-${capacity}`))]);
    if (mine !== loading) return;
    model.alarm = model.status = "";
    const made = Object.fromEntries(methods.map((name, k) => [name, programs[k]]));
    if (goOn) {
      run.values = { ...values };
      run.widen(made);
      return show();
    }
    model.scene = { cards: methods.map((name) => scene.cards[name]), backgrounds: [scene.background], note: "" };
    run = new Run(made, scene.cards, values, setup.seed);
    model.starting = ++number;
    show();
  } catch (error) {
    model.status = "";
    model.alarm = error.message;
  }
}

// ---- the loop

function show() {
  model.tell("msg:custom", run.pack(number));
  $("step").textContent = `step ${run.clock}`;
  Object.assign($("past"), { max: run.history.length - 1, value: run.place });
  const stopped = run.stopped.map((name) => index.methods.find((m) => m.name === name).label);
  model.alarm = stopped.length ? `${stopped.join(" and ")} diverged: a smaller step size helps.` : "";
  const address = `?${link()}`;
  if (address !== location.search) history.replaceState(null, "", address);  // browsers count these
}
function frame() {
  requestAnimationFrame(frame);
  if (!playing || !run || document.hidden) return;
  run.advance(Number($("speed").value));
  show();
}
function play(on) {
  playing = on;
  $("play").textContent = on ? "Pause" : "Play";
  $("play").setAttribute("aria-pressed", String(on));
}
const toggle = () => play(!playing);
const one = () => change(() => run.advance(1), true);
const back = () => change(() => run.go(Math.max(0, run.place - 1)), true);
const restart = () => { if (run) setup.values = { ...run.values }; load(); };
function change(act, pause = false) {
  if (!run) return;
  if (pause) play(false);
  act();
  show();
}

// ---- controls

const shown = (value, { scale }) => (scale === "integer" ? String(value) : String(Number(value.toPrecision(3))));
const LEAST = 1e-3;  // of a slider with a zero at its left end
function scaled({ low, high, scale }) {
  const least = scale === "log0" ? LEAST : low, ratio = Math.log(high / least);
  if (!scale.startsWith("log")) return { to: (v) => (v - low) / (high - low), from: (t) => low + t * (high - low) };
  return {
    to: (v) => (v < least ? 0 : scale === "log0" ? 0.02 + (0.98 * Math.log(v / least)) / ratio : Math.log(v / least) / ratio),
    from: (t) => (scale !== "log0" ? least * Math.exp(t * ratio) : t < 0.02 ? 0 : least * Math.exp(((t - 0.02) / 0.98) * ratio)),
  };
}
function slider(name) {
  const knob = index.knobs[name], { to, from } = scaled(knob), row = document.createElement("label");
  row.className = "knob";
  row.title = knob.help;
  row.innerHTML = `<span></span><output></output><input type="range" min="0" max="1" step="any">`;
  const [label, output, input] = row.children;
  label.textContent = knob.label;
  input.ariaLabel = knob.label;
  if (knob.scale === "integer") Object.assign(input, { min: knob.low, max: knob.high, step: 1 });
  const draw = (value) => { output.textContent = shown(value, knob); input.setAttribute("aria-valuetext", output.textContent); };
  row.place = (value) => { input.value = knob.scale === "integer" ? value : to(value); draw(value); };
  input.oninput = () => {
    const t = Number(input.value), value = knob.scale === "integer" ? t : Number(from(t).toPrecision(3));
    draw(value);
    setup.values[name] = value;
    const room = run && Object.values(run.programs)[0].meta.capacity;
    if (name === "method.particles" && !(value <= room)) return load(run !== null);
    change(() => run.set(name, value));
  };
  return row;
}
function select(label, options, act) {
  const row = document.createElement("label");
  row.className = "choice";
  row.innerHTML = "<span></span><select></select>";
  row.children[0].textContent = label;
  for (const each of options) row.children[1].add(new Option(each.label, each.name));
  row.children[1].ariaLabel = label;
  row.children[1].onchange = () => act(row.children[1].value);
  row.place = (value) => { row.children[1].value = value; };
  return row;
}
const rows = {};
function build() {
  rows.target = select("Posterior", index.targets, (name) => { setup.target = name; restart(); });
  rows.target.place(setup.target);
  const methods = document.createElement("fieldset");
  methods.innerHTML = `<legend>Methods (1 to ${MOST})</legend>`;
  for (const { name, label, colour, dark } of index.methods) {
    const row = document.createElement("label");
    row.innerHTML = `<input type="checkbox"><i></i><span></span>`;
    const [box, dot, text] = row.children;
    Object.assign(box, { checked: setup.methods.includes(name), value: name });
    dot.style.background = `light-dark(${colour}, ${dark})`;
    text.textContent = label;
    box.onchange = () => choose(name, box.checked);
    methods.append(row);
  }
  rows.methods = methods;
  $("controls").append(rows.target, methods);
  for (const name of KNOBS) {
    rows[name] = slider(name);
    rows[name].classList.toggle("aside", !SHORT.includes(name));
    $("controls").append(rows[name]);
  }
  for (const name of CHOICES) {
    const { label, choices } = index.knobs[name];
    const act = (value) => { const k = choices.findIndex((c) => c.name === value); setup.values[name] = k; change(() => run.set(name, k)); };
    rows[name] = select(label, choices, act);
    $("controls").append(rows[name]);
  }
  for (const name of KNOBS) rows[name].place(setup.values[name]);
  for (const name of CHOICES) rows[name].place(index.knobs[name].choices[setup.values[name]].name);
}
function choose(name, on) {
  const now = setup.methods.filter((each) => each !== name), next = on ? [...now, name].slice(-MOST) : now;
  if (next.length) setup.methods = next;
  for (const box of rows.methods.querySelectorAll("input")) box.checked = setup.methods.includes(box.value);
  restart();
}

// ---- the theme, and a page within another one: it says how high it is, and takes the theme that it is sent

const THEMES = ["light", "dark"];
steinlab.theme = THEMES.find((name) => name === asked.get("theme"));
const wants = () => steinlab.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
function darken() {
  document.documentElement.style.colorScheme = wants();
  document.documentElement.dataset.theme = wants();
  model.dark = wants() === "dark";
  $("theme").textContent = wants() === "dark" ? "Light" : "Dark";
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", darken);
$("theme").onclick = () => { steinlab.theme = wants() === "dark" ? "light" : "dark"; darken(); };
$("play").onclick = toggle;
$("one").onclick = one;
$("reset").onclick = restart;
$("seed").onclick = () => { setup.seed = (setup.seed + 1) % 2 ** 32; restart(); };
$("past").oninput = () => change(() => run.go(Number($("past").value)), true);
const embed = () => {
  const url = new URL(location.href);
  url.searchParams.set("ui", "min");
  const title = "Stein particle inference, live";
  return `<iframe src="${url.href.replaceAll("%2C", ",").replaceAll("&", "&amp;")}" title="${title}" style="width: 100%; height: 560px; border: 0"></iframe>`;
};
function copies(button, text) {
  const label = button.textContent;
  button.onclick = async () => {
    await navigator.clipboard?.writeText(text());
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = label; }, 1500);
  };
}
copies($("copy"), () => location.href);
copies($("embed"), embed);
if (parent !== window) {
  const grow = () => {  // never less: the stage is as high as its window allows
    const height = document.body.scrollHeight;
    if (height > innerHeight) parent.postMessage({ steinlab: { height } }, "*");
  };
  new ResizeObserver(grow).observe(document.body);
  addEventListener("message", ({ data }) => {
    if (!THEMES.includes(data?.steinlab?.theme)) return;
    steinlab.theme = data.steinlab.theme;
    darken();
  });
}
document.body.classList.toggle("min", short);
darken();
build();
steinlab.render({ model, el: $("stage") });
$("problems").textContent = setup.problems.join(" ");
load().then(() => play(!matchMedia("(prefers-reduced-motion: reduce)").matches));
frame();
steinlab.lab = { get run() { return run; }, setup: () => setup, play, link, embed };
