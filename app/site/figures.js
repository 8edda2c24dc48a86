// Figures in a text: a stage with a few controls, a chart of curves, or a drawing of a lesson. Each loads when it comes
// near the screen.
const figures = {};

class Figure {
  constructor(root) {
    const facts = JSON.parse(root.dataset.figure);
    const values = Object.fromEntries(Object.entries(index.knobs).map(([name, knob]) => [name, knob.value]));
    const stage = document.createElement("div"), bar = document.createElement("div");
    bar.className = "transport";
    root.prepend(stage, bar);
    this.rows = {};
    const setup = { place: facts.place, methods: facts.methods, values: { ...values, ...facts.values }, seed: facts.seed };
    const marks = Object.fromEntries(Object.entries(index.marks).filter(([name]) => facts.marks.includes(name)));
    this.player = new Player(stage, setup, { embedded: true, marks, show: Object.fromEntries(facts.marks.map((name) => [name, true])) });
    const button = (label, act, name = "") => bar.appendChild(Object.assign(document.createElement("button"), { type: "button", textContent: label, onclick: act, className: name }));
    const play = button("Play", () => this.player.toggle(), "strong");
    this.player.onPlay = (on) => { play.textContent = on ? "Pause" : "Play"; };
    button("Reset", () => this.player.restart());
    if (facts.pick.length) {
      const options = facts.pick.map((name) => index.methods.find((one) => one.name === name));
      const row = select("beside SVGD", options, (name) => { this.player.setup.methods = [facts.methods[0], name]; this.player.restart(); });
      row.place(facts.methods[1]);
      bar.append(row);
    }
    for (const name of facts.sliders) {
      const knob = index.knobs[name];
      const row = knob.choices
        ? select(knob.label, knob.choices, (value) => this.player.set(name, knob.choices.findIndex((c) => c.name === value)))
        : slider(name, (value) => this.player.set(name, value), name === "method.particles" ? index.capacities[0] : undefined);
      row.place(knob.choices ? knob.choices[setup.values[name]].name : setup.values[name]);
      bar.append(row);
      this.rows[name] = row;
    }
    this.player.model.dark = document.documentElement.dataset.theme === "dark";
    this.player.speed = facts.speed;
    this.ready = this.player.load().then(() => {
      if (facts.steps) this.player.change(() => this.player.run.advance(facts.steps));
    });
  }
  async run() {
    await this.ready;
    this.player.play(true);
  }
}

// A chart of curves that were computed before: variance against dimension. Its slider chooses among them.
class Chart {
  constructor(root) {
    Object.assign(this, { root, facts: JSON.parse(root.dataset.chart), at: 0 });
    const { sets, start } = this.facts;
    this.picture = root.insertBefore(document.createElementNS(SVG, "svg"), root.firstChild);
    const bar = document.createElement("div");
    bar.className = "transport";
    this.picture.after(bar);
    const names = sets.map(({ name }) => name), { slider: label, choose } = this.facts;
    bar.append(choose ? select(label, names.map((name) => ({ name, label: name })), (name) => this.show(names.indexOf(name))) : stepper(label, names, start, (at) => this.show(at)));
    new ResizeObserver(() => this.show(this.at)).observe(root);
    this.show(start);
  }
  repaint() { this.show(this.at); }
  show(at) {
    this.at = at;
    const w = this.root.clientWidth;
    if (w) drawChart(this.picture, this.facts, this.facts.sets[at], w, Math.min(360, 0.7 * w), document.documentElement.dataset.theme === "dark");
  }
}

// A figure of a lesson, which Bokeh shows. It was drawn before, for each place of its controls.
const loads = (src) => new Promise((done, fail) => {
  const tag = Object.assign(document.createElement("script"), { src, onload: done, onerror: () => fail(new Error(`${src} could not be loaded.`)) });
  document.head.append(tag);
});
const bokeh = () => (steinlab.bokeh ??= loads("lib/bokeh.min.js"));

class Drawing {
  constructor(root) {
    const controls = JSON.parse(root.dataset.controls), bar = document.createElement("div");
    Object.assign(this, { root, controls, rows: {}, at: controls.map(({ start }) => start), number: 0 });
    bar.className = "transport";
    this.picture = document.createElement("div");
    root.append(bar, this.picture);
    controls.forEach(({ name, label, texts, start, slider }, k) => {
      const turn = (at) => { this.at[k] = at; this.place(); };
      const options = texts.map((text) => ({ name: text, label: text }));
      const row = slider ? stepper(label, texts, start, turn) : select(label, options, (text) => turn(texts.indexOf(text)));
      bar.append(this.rows[name] = row);
    });
    this.said = bar.appendChild(Object.assign(document.createElement("span"), { role: "alert" }));
    this.show();
  }
  repaint() { this.show(); }
  get name() { return this.root.dataset.drawing; }

  // Shows the figure in the theme of the page.
  async show() {
    try {
      const [made] = await Promise.all([file(`drawings/${this.name}`), bokeh()]);
      const doc = made[document.documentElement.dataset.theme], target = document.createElement("div");
      this.picture.replaceChildren(target);
      const views = await Bokeh.embed.embed_item({ doc, root_id: doc.roots[0].id, version: doc.version }, target);
      this.document = views.roots[0].model.document;
      await this.place();
    } catch (error) {
      this.said.textContent = error.message;
    }
  }
  // Shows what was drawn for the present place of the controls.
  async place() {
    if (!this.controls.length || !this.document) return;
    const mine = ++this.number, index = this.controls.reduce((sum, { texts }, k) => sum * texts.length + this.at[k], 0);
    try {
      const events = await file(`drawings/${this.name}/${index}`);
      if (mine === this.number) this.document.apply_json_patch({ events });
      this.shown = index;
      this.said.textContent = "";
    } catch (error) {
      this.said.textContent = error.message;
    }
  }
}

const near = new IntersectionObserver((all) => {
  for (const { target, isIntersecting } of all) if (isIntersecting) begin(target);
}, { rootMargin: "60% 0px" });
function begin(root) {
  near.unobserve(root);
  const { chart, drawing } = root.dataset;
  if (figures[root.id]) return figures[root.id];
  figures[root.id] = chart ? new Chart(root) : drawing ? new Drawing(root) : new Figure(root);
  dispatchEvent(new Event("steinlab-turned"));
  return figures[root.id];
}
// Runs a stage and brings it on screen.
async function runs(root) {
  await begin(root).run?.();
  root.scrollIntoView({ block: "nearest", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
}
document.querySelectorAll("figure[data-figure], figure[data-chart], figure[data-drawing]").forEach((root) => near.observe(root));
themed();
new MutationObserver(() => Object.values(figures).forEach((one) => one.repaint?.())).observe(document.documentElement, { attributeFilter: ["data-theme"] });
steinlab.figures = figures;
