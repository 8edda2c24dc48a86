// The lab of the site: its controls and its link.
const KNOBS = ["method.particles", "method.alpha", "method.step_size", "bandwidth.factor"], CHOICES = ["kernel.name", "bandwidth.rule"];
const OTHERS = ["target", "dim", "methods", "seed", "ui", "theme"];  // of a link
const MORE = Object.keys(index.knobs).filter((name) => ![...KNOBS, ...CHOICES].includes(name));  // of a link only
const OFFERED = index.methods.filter((m) => m.offered);
const MOST = 3;  // methods side by side
const SHORT = ["method.particles", "method.alpha"];  // the sliders of an embedded page
const short = asked.get("ui") === "min", setup = read(location.search);
const player = new Player($("stage"), setup, { onShow });

// ---- the link: the same names as the app's

function read(text) {
  const query = new URLSearchParams(text), values = {}, problems = [];
  const of = (name, known, usual) => {
    const value = query.get(name);
    if (value === null || known.includes(value)) return value ?? usual;
    problems.push(`${name} = ${value}; here: ${known.join(", ")}.`);
    return usual;
  };
  const target = of("target", index.targets.map((t) => t.target), index.usual.target);
  const places = index.targets.filter((t) => t.target === target);
  const place = places.find((t) => t.dim === Number(query.get("dim") ?? places[0].dim)) ?? places[0];
  if (query.has("dim") && place.dim !== Number(query.get("dim"))) problems.push(`dim = ${query.get("dim")}; here: ${places.map((t) => t.dim).join(", ")}.`);
  const named = (query.get("methods") ?? index.usual.methods.join()).split(","), there = OFFERED.map((m) => m.name);
  const methods = [...new Set(named)].filter((name) => there.includes(name)).slice(0, MOST);
  if (methods.length < named.length) problems.push(`methods = ${named}; here: up to ${MOST} of ${there.join(", ")}.`);
  const within = (name, { value: usual, low, high, scale }) => {
    const value = query.has(name) ? Number(query.get(name) || NaN) : usual, whole = scale === "integer";
    if (value >= low && value <= high && (!whole || Number.isInteger(value))) return value;
    problems.push(`${name} = ${query.get(name)}; allowed: ${whole ? "whole numbers, " : ""}${low} to ${high}.`);
    return usual;
  };
  for (const name of [...KNOBS, ...MORE]) values[name] = within(name, index.knobs[name]);
  for (const name of CHOICES) {
    const { choices, value } = index.knobs[name];
    values[name] = choices.findIndex((c) => c.name === of(name, choices.map((c) => c.name), choices[value].name));
  }
  const seed = within("seed", { value: 0, low: 0, high: 2 ** 32 - 1, scale: "integer" });
  const strangers = [...query.keys()].filter((name) => ![...KNOBS, ...CHOICES, ...MORE, ...OTHERS].includes(name));
  if (strangers.length) problems.push(`${strangers.join(", ")}: only the app reads this; here it has no effect.`);
  return { place: place.name, methods: methods.length ? methods : index.usual.methods, values, problems, seed };
}

function link() {
  const { target, dim } = index.targets.find((t) => t.name === setup.place), query = new URLSearchParams({ target });
  if (dim !== 2) query.set("dim", String(dim));  // the app's own choice
  query.set("methods", setup.methods.join());
  for (const name of [...KNOBS, ...CHOICES, ...MORE]) {
    const { value, choices } = index.knobs[name], now = player.run?.values[name] ?? setup.values[name];
    if (now !== value) query.set(name, choices ? choices[now].name : String(now));
  }
  if (setup.seed) query.set("seed", String(setup.seed));
  for (const name of ["ui", "theme"]) if (asked.has(name)) query.set(name, asked.get(name));
  return query.toString().replaceAll("%2C", ",");
}

// ---- what is around the stage

function onShow(run) {
  $("step").textContent = `step ${run.clock}`;
  Object.assign($("past"), { max: run.history.length - 1, value: run.place });
  if (rows["method.particles"]) rows["method.particles"].place(run.count);
  const address = `?${link()}`;
  if (address !== location.search) history.replaceState(null, "", address);  // browsers count these
}
player.onPlay = (on) => {
  $("play").textContent = on ? "Pause" : "Play";
  $("play").setAttribute("aria-pressed", String(on));
};
const restart = () => player.restart();

const rows = {};
function build() {
  rows.target = select("Posterior", index.targets, (name) => { setup.place = name; restart(); });
  rows.target.place(setup.place);
  const methods = document.createElement("fieldset");
  methods.innerHTML = `<legend>Methods (1 to ${MOST})</legend>`;
  for (const { name, label, colour, dark } of OFFERED) {
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
    rows[name] = slider(name, (value) => player.set(name, value));
    rows[name].classList.toggle("aside", !SHORT.includes(name));
    $("controls").append(rows[name]);
  }
  for (const name of CHOICES) {
    const { label, choices } = index.knobs[name];
    const act = (value) => player.set(name, choices.findIndex((c) => c.name === value));
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

// ---- buttons; and a page within another one: it says how high it is, and takes the theme that it is sent

$("play").onclick = () => player.toggle();
$("one").onclick = () => player.one();
$("speed").onchange = () => { player.speed = Number($("speed").value); };
$("reset").onclick = restart;
$("seed").onclick = () => { setup.seed = (setup.seed + 1) % 2 ** 32; restart(); };
$("past").oninput = () => player.change(() => player.run.go(Number($("past").value)), true);
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
$("replay").onclick = async () => player.model.tell("msg:custom", { export: "html", page: await file("replay") });
$("film").onclick = () => player.model.tell("msg:custom", { export: "webm" });
copies($("copy"), () => location.href);
copies($("embed"), embed);
if (parent !== window) {
  const grow = () => {  // never less: the stage is as high as its window allows
    const height = document.body.scrollHeight;
    if (height > innerHeight) parent.postMessage({ steinlab: { height } }, "*");
  };
  new ResizeObserver(grow).observe(document.body);
  addEventListener("message", ({ data }) => {
    if (!THEME.includes(data?.steinlab?.theme)) return;
    steinlab.theme = data.steinlab.theme;
    darken();
  });
}
document.body.classList.toggle("min", short);
build();
themed();
$("problems").textContent = setup.problems.join(" ");
player.load().then(() => player.play(!matchMedia("(prefers-reduced-motion: reduce)").matches));
steinlab.lab = { player, get run() { return player.run; }, setup: () => setup, play: (on) => player.play(on), link, embed };
