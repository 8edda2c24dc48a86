// One run on one stage: it loads what it needs, plays while it is on screen, and tells its page what it shows.

// Files: each is a script that gives its content, which works from a disk, too.
const given = steinlab.given, coming = {};
steinlab.give = (name, what) => { given[name] = what; coming[name]?.done(what); };
function file(name) {
  if (given[name]) return given[name];
  if (coming[name]) return coming[name].promise;
  const wait = coming[name] = {};
  wait.promise = new Promise((done, fail) => {
    wait.done = done;
    const script = document.createElement("script");
    script.src = `${name}.js`;
    script.onerror = () => { delete coming[name]; fail(new Error(`${name}.js could not be loaded.`)); };
    document.head.append(script);
  });
  return wait.promise;
}

class Player {
  // el: the element of its stage. setup: {place, methods, values, seed}. embedded: the stage is low, in a text.
  // onShow(run): at each frame.
  constructor(el, setup, { show = index.show, marks = index.marks, embedded = false, onShow = () => {} } = {}) {
    Object.assign(this, { setup, onShow, run: null, playing: false, number: 0, loading: 0, speed: 1, seen: true });
    this.model = new steinlab.StageModel({ marks, show, embedded }, (message) => this.hear(message));
    steinlab.render({ model: this.model, el });
    new IntersectionObserver((all) => { this.seen = all.at(-1).isIntersecting; }).observe(el);
    Player.all.push(this);
  }

  hear(message) {
    if (message.add || message.remove !== undefined) this.change(() => this.run.edit(message));
    if (message.key) ({ space: () => this.toggle(), right: () => this.one(), left: () => this.back(), r: () => this.restart() })[message.key]?.();
  }

  // Loads what the setup needs, and begins a run; or goes on with the present one if it only needs more room.
  async load(goOn = false) {
    const mine = ++this.loading, { place, methods, values } = this.setup, { model } = this;
    model.status = "loading …";
    try {
      const capacity = index.capacities.find((c) => c >= values["method.particles"]);
      const needed = methods.map((name) => file(`programs/${place}-${name}-${capacity}`));
      const [scene, ...programs] = await Promise.all([file(`scenes/${place}`), ...needed]);
      if (mine !== this.loading) return;
      model.alarm = model.status = "";
      const made = Object.fromEntries(methods.map((name, k) => [name, programs[k]]));
      if (goOn) {
        this.run.values = { ...values };
        this.run.widen(made);
        return this.show();
      }
      model.scene = { cards: methods.map((name) => scene.cards[name]), backgrounds: [scene.background], note: "" };
      this.run = new Run(made, scene.cards, values, this.setup.seed);
      model.starting = ++this.number;
      this.show();
    } catch (error) {
      model.status = "";
      model.alarm = error.message;
    }
  }

  show() {
    const { run } = this;
    this.model.tell("msg:custom", run.pack(this.number));
    const stopped = run.stopped.map((name) => index.methods.find((m) => m.name === name).label);
    this.model.alarm = stopped.length ? `${stopped.join(" and ")} diverged: a smaller step size helps.` : "";
    this.onShow(run);
  }

  play(on) {
    this.playing = on;
    this.onPlay?.(on);
  }
  toggle() { this.play(!this.playing); }
  change(act, pause = false) {
    if (!this.run) return;
    if (pause) this.play(false);
    act();
    this.show();
  }
  one() { this.change(() => this.run.advance(1), true); }
  back() { this.change(() => this.run.go(Math.max(0, this.run.place - 1)), true); }
  restart() {
    if (this.run) this.setup.values = { ...this.run.values };
    return this.load();
  }
  set(name, value) {
    this.setup.values[name] = value;
    const room = this.run && Object.values(this.run.programs)[0].meta.capacity;
    if (name === "method.particles" && !(value <= room)) return this.load(this.run !== null);
    this.change(() => this.run.set(name, value));
  }
}
Player.all = [];

function frame() {
  requestAnimationFrame(frame);
  if (document.hidden) return;
  for (const one of Player.all) {
    if (!one.playing || !one.run || !one.seen) continue;
    one.run.advance(one.speed);
    one.show();
  }
}
frame();

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
function slider(name, act, most = Infinity) {
  const knob = { ...index.knobs[name] }, row = document.createElement("label");
  knob.high = Math.min(knob.high, most);
  const { to, from } = scaled(knob);
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
    act(value);
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

// ---- the theme

const asked = new URLSearchParams(location.search), THEME = ["light", "dark"];
steinlab.theme = THEME.find((name) => name === asked.get("theme"));
const wants = () => steinlab.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
function darken() {
  document.documentElement.style.colorScheme = wants();
  document.documentElement.dataset.theme = wants();
  for (const one of Player.all) one.model.dark = wants() === "dark";
  $("theme").textContent = wants() === "dark" ? "Light" : "Dark";
}
function themed() {
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", darken);
  $("theme").onclick = () => { steinlab.theme = wants() === "dark" ? "light" : "dark"; darken(); };
  darken();
}
