// One run on one stage: it loads what it needs, plays while it is on screen, and tells its page what it shows.

steinlab.patience = 24;  // milliseconds of a step that are too long
const SLOW = 5;  // such steps, one after another

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

// A worker that computes what takes longer than a frame, so that the page stays quick. makers: {method: function that
// gives its program}.
class Helper {
  constructor(makers) {
    const made = Object.entries(makers).map(([name, maker]) => `${JSON.stringify(name)}: (${maker})()`).join();
    const answer = "onmessage = ({ data }) => postMessage(computed(programs, data));";
    const code = [steinlab.helpers, computed, `const programs = { ${made} };`, answer].join("\n");
    this.address = URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
    this.worker = new Worker(this.address);
  }
  ask(job) {
    return new Promise((done, fail) => {
      this.worker.onmessage = ({ data }) => done(data);
      this.worker.onerror = (event) => {
        event.preventDefault();  // the page says it
        fail(new Error(event.message || "The worker could not begin."));
      };
      this.worker.postMessage(job);
    });
  }
  end() {
    this.worker.terminate();
    URL.revokeObjectURL(this.address);
  }
}

class Player {
  // el: the element of its stage. setup: {place, methods, values, seed}. embedded: the stage is low, in a text.
  // onShow(run): at each frame.
  constructor(el, setup, { show = index.show, marks = index.marks, embedded = false, onShow = () => {} } = {}) {
    Object.assign(this, { setup, onShow, run: null, playing: false, number: 0, loading: 0, speed: 1, seen: true, helper: null, waiting: false, slow: 0 });
    this.model = new steinlab.StageModel({ marks, show, embedded }, (message) => this.hear(message));
    steinlab.render({ model: this.model, el });
    new IntersectionObserver((all) => { this.seen = all.at(-1).isIntersecting; }).observe(el);
    Player.all.push(this);
  }

  hear(message) {
    if (["add", "remove", "move"].some((name) => name in message)) this.change(() => this.run.edit(message));
    if ("grab" in message) this.change(() => (message.grab ? this.run.grab() : this.run.letGo()));
    if (message.key) ({ space: () => this.toggle(), right: () => this.one(), left: () => this.back(), r: () => this.restart() })[message.key]?.();
  }

  // Loads what the setup needs, and begins a run; or goes on with the present one if it only needs more room.
  async load(goOn = false) {
    const mine = ++this.loading, { place, methods, values } = this.setup, { model } = this;
    model.status = "loading …";
    try {
      const capacity = index.capacities.find((c) => c >= values["method.particles"]);
      const needed = methods.map((name) => file(`programs/${place}-${name}-${capacity}`));
      const [scene, ...makers] = await Promise.all([file(`scenes/${place}`), ...needed]);
      if (mine !== this.loading) return;
      model.alarm = model.status = "";
      this.helper?.end();
      Object.assign(this, { makers: Object.fromEntries(methods.map((name, k) => [name, makers[k]])), helper: null, waiting: false, slow: 0 });
      const made = Object.fromEntries(methods.map((name, k) => [name, makers[k]()]));
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
  // Goes on by so many steps: here, or beside the page if that has taken longer than a frame several times.
  async ahead(steps) {
    const { run, helper } = this;
    if (this.waiting || !run) return;
    if (!helper) {
      const began = performance.now();
      run.advance(steps);
      this.show();
      this.slow = performance.now() - began > steinlab.patience ? this.slow + 1 : 0;
      if (this.slow > SLOW) this.helper = new Helper(this.makers);
      return;
    }
    const job = run.job(steps), { states } = run;
    this.waiting = true;
    try {
      const found = await helper.ask(job);
      if (helper !== this.helper) return;
      if (run.states === states) {  // nobody has changed the run meanwhile
        run.take(found, job);
        this.show();
      }
    } catch (error) {
      this.play(false);
      this.model.alarm = error.message;
    }
    this.waiting = false;
  }
  one() {
    this.play(false);
    return this.ahead(1);
  }
  back() { this.change(() => this.run.go(Math.max(0, this.run.place - 1)), true); }
  restart() {
    if (this.run) this.setup.values = { ...this.run.values };
    return this.load();
  }
  set(name, value) {
    this.setup.values[name] = value;
    const room = this.run && Object.values(this.run.programs)[0].meta.capacity;
    if (name === "method.particles" && !(value <= room)) return this.load(this.run !== null);
    this.change(() => this.run.set(name, value, !this.helper));
    if (this.helper && !this.playing) return this.ahead(0);
  }
}
Player.all = [];

function frame() {
  requestAnimationFrame(frame);
  if (document.hidden) return;
  for (const one of Player.all) {
    if (!one.playing || !one.run || !one.seen) continue;
    one.ahead(one.speed);
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
// A row has facts(), what a number in a text says of it, and turn(steps, value), which moves it.
function rowOf(label, input, text, act) {
  const row = document.createElement("label");
  row.className = "knob";
  row.append(Object.assign(document.createElement("span"), { textContent: label }), document.createElement("output"), input);
  input.ariaLabel = label;
  row.draw = () => { row.children[1].textContent = text(); input.setAttribute("aria-valuetext", text()); };
  input.oninput = () => { row.draw(); act(); };
  row.move = (value) => {
    input.value = value;
    input.dispatchEvent(new Event("input", { bubbles: true }));
  };
  return row;
}
const range = (facts) => Object.assign(document.createElement("input"), { type: "range", ...facts });
function slider(name, act, most = Infinity) {
  const knob = { ...index.knobs[name] }, whole = knob.scale === "integer";
  knob.high = Math.min(knob.high, most);
  const { to, from } = whole ? { to: (v) => v, from: (t) => t } : scaled(knob);
  const input = range(whole ? { min: knob.low, max: knob.high, step: 1 } : { min: 0, max: 1, step: "any" });
  const value = () => { const t = Number(input.value); return whole ? t : Number(from(t).toPrecision(3)); };
  let now = value();
  const row = rowOf(knob.label, input, () => shown(now, knob), () => act(now));
  const draw = row.draw, tell = input.oninput;
  input.oninput = () => { now = value(); tell(); };
  row.title = knob.help;
  row.place = (given) => { now = given; input.value = to(given); draw(); };
  row.facts = () => ({ label: knob.label, value: now, low: knob.low, high: knob.high, text: shown(now, knob) });
  row.turn = (steps, given) => row.move((given === undefined ? Number(input.value) : to(given)) + steps * (whole ? 1 : 0.02));
  return row;
}
// A slider over texts, of which act(place) shows one.
function stepper(label, texts, start, act) {
  const input = range({ min: 0, max: texts.length - 1, step: 1, value: start }), numbers = texts.map(Number);
  const at = () => Number(input.value), row = rowOf(label, input, () => texts[at()], () => act(at()));
  const nearest = (value) => numbers.reduce((best, one, k) => (Math.abs(one - value) < Math.abs(numbers[best] - value) ? k : best), 0);
  row.facts = () => ({ label, value: numbers[at()], low: numbers[0], high: numbers.at(-1), text: texts[at()] });
  row.turn = (steps, given) => row.move((given === undefined ? at() : nearest(given)) + steps);
  row.draw();
  return row;
}
function select(label, options, act) {
  const row = document.createElement("label");
  row.className = "choice";
  row.innerHTML = "<span></span><select></select>";
  const box = row.children[1];
  row.children[0].textContent = label;
  for (const each of options) box.add(new Option(each.label, each.name));
  box.ariaLabel = label;
  box.onchange = () => act(box.value);
  row.place = (value) => { box.value = value; };
  row.facts = () => ({ label, value: box.selectedIndex, low: 0, high: box.length - 1, text: box.selectedOptions[0].text });
  row.turn = (steps, given) => {
    box.selectedIndex = Math.min(Math.max((given ?? box.selectedIndex) + steps, 0), box.length - 1);
    for (const kind of ["input", "change"]) box.dispatchEvent(new Event(kind, { bubbles: true }));
  };
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
