// The essay: a figure is a stage with a few controls, or a chart; each loads when it comes near the screen.
const figures = {};

class Figure {
  constructor(root) {
    const facts = JSON.parse(root.dataset.figure);
    const values = Object.fromEntries(Object.entries(index.knobs).map(([name, knob]) => [name, knob.value]));
    const stage = document.createElement("div"), bar = document.createElement("div");
    bar.className = "transport";
    root.prepend(stage, bar);
    const setup = { place: facts.place, methods: facts.methods, values: { ...values, ...facts.values }, seed: facts.seed };
    const marks = Object.fromEntries(Object.entries(index.marks).filter(([name]) => facts.marks.includes(name)));
    this.player = new Player(stage, setup, { embedded: true, marks, show: Object.fromEntries(facts.marks.map((name) => [name, true])) });
    const button = (label, act, name = "") => bar.appendChild(Object.assign(document.createElement("button"), { type: "button", textContent: label, onclick: act, className: name }));
    const play = button("Play", () => this.player.toggle(), "strong");
    this.player.onPlay = (on) => { play.textContent = on ? "Pause" : "Play"; };
    button("Reset", () => this.player.restart());
    for (const name of facts.sliders) {
      const knob = index.knobs[name];
      const row = knob.choices
        ? select(knob.label, knob.choices, (value) => this.player.set(name, knob.choices.findIndex((c) => c.name === value)))
        : slider(name, (value) => this.player.set(name, value), name === "method.particles" ? index.capacities[0] : undefined);
      row.place(knob.choices ? knob.choices[setup.values[name]].name : setup.values[name]);
      bar.append(row);
    }
    this.player.model.dark = document.documentElement.dataset.theme === "dark";
    this.player.speed = facts.speed;
    this.ready = this.player.load();
  }
  async run() {
    await this.ready;
    this.player.play(true);
  }
}

// A chart of curves that were computed before: variance against dimension. Its slider chooses among them.
const SVG = "http://www.w3.org/2000/svg";
const draw = (parent, name, facts, text = "") => {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(facts)) node.setAttribute(key, value);
  node.textContent = text;
  return parent.appendChild(node);
};
class Chart {
  constructor(root) {
    Object.assign(this, { root, facts: JSON.parse(root.dataset.chart), at: 0 });
    const { sets, start } = this.facts;
    this.picture = root.insertBefore(document.createElementNS(SVG, "svg"), root.firstChild);
    const bar = document.createElement("div");
    bar.className = "transport";
    this.picture.after(bar);
    if (sets.length > 1) {
      const row = document.createElement("label");
      row.className = "knob";
      row.innerHTML = `<span></span><output></output><input type="range" min="0" step="1">`;
      row.children[0].textContent = this.facts.slider;
      Object.assign(row.children[2], { max: sets.length - 1, value: start, ariaLabel: this.facts.slider });
      row.children[2].oninput = () => this.show(Number(row.children[2].value));
      this.told = row.children[1];
      bar.append(row);
    }
    new ResizeObserver(() => this.show(this.at)).observe(root);
    this.show(start);
  }
  show(at) {
    this.at = at;
    const { sets, x, y, labels } = this.facts, { name, lines, points } = sets[at], w = this.root.clientWidth, h = Math.min(360, 0.7 * w);
    if (!w) return;
    if (this.told) this.told.textContent = name;
    const { picture } = this, left = 58, bottom = 46, right = 14, top = 14;
    picture.replaceChildren();
    for (const [key, value] of Object.entries({ width: w, height: h, viewBox: `0 0 ${w} ${h}`, role: "img" })) picture.setAttribute(key, value);
    picture.ariaLabel = this.facts.label;
    const scale = ([low, high], from, to) => (v) => from + (Math.log(v / low) / Math.log(high / low)) * (to - from);
    const px = scale(x, left, w - right), py = scale(y, h - bottom, top);
    const ticks = ([low, high]) => [-3, -2, -1, 0, 1, 2, 3].flatMap((k) => [1, 2, 5].map((m) => m * 10 ** k)).filter((v) => v >= low * 0.999 && v <= high * 1.001);
    for (const v of ticks(x)) {
      draw(picture, "line", { x1: px(v), x2: px(v), y1: top, y2: h - bottom, class: "grid" });
      draw(picture, "text", { x: px(v), y: h - bottom + 18, "text-anchor": "middle" }, String(v));
    }
    for (const v of ticks(y)) {
      draw(picture, "line", { x1: left, x2: w - right, y1: py(v), y2: py(v), class: v === 1 ? "truth" : "grid" });
      draw(picture, "text", { x: left - 8, y: py(v) + 4, "text-anchor": "end" }, String(+v.toPrecision(2)));
    }
    draw(picture, "text", { x: (left + w - right) / 2, y: h - 6, "text-anchor": "middle" }, labels[0]);
    const dark = document.documentElement.dataset.theme === "dark", colour = (m) => { const one = index.methods.find((each) => each.name === m); return dark ? one.dark : one.colour; };
    for (const line of lines) {
      const d = line.at.map(([a, b], k) => `${k ? "L" : "M"}${px(a).toFixed(1)} ${py(b).toFixed(1)}`).join("");
      draw(picture, "path", { d, fill: "none", stroke: colour(line.method), "stroke-width": 2.5 });
      const [a, b] = line.at.at(-1);
      draw(picture, "text", { x: Math.min(px(a), w - right), y: py(b) - 8, "text-anchor": "end", class: "name", fill: colour(line.method) }, line.name);
    }
    for (const { method, at: [a, b] } of points) draw(picture, "circle", { cx: px(a), cy: py(b), r: 5, fill: colour(method), class: "run" });
  }
}

const near = new IntersectionObserver((all) => {
  for (const { target, isIntersecting } of all) if (isIntersecting) begin(target);
}, { rootMargin: "60% 0px" });
function begin(root) {
  near.unobserve(root);
  return figures[root.id] ??= root.dataset.chart ? new Chart(root) : new Figure(root);
}
document.querySelectorAll("figure[data-figure], figure[data-chart]").forEach((root) => near.observe(root));
predictions(document, async (key) => {
  const root = document.getElementById(document.querySelector(`[data-key="${key}"]`).dataset.of);
  await begin(root).run?.();
  root.scrollIntoView({ block: "nearest", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
}, true);
themed();
new MutationObserver(() => Object.values(figures).forEach((one) => one instanceof Chart && one.show(one.at)))
  .observe(document.documentElement, { attributeFilter: ["data-theme"] });
steinlab.essay = figures;
