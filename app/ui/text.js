// Text with formulas: \(...\) and \[...\] become pictures, drawn by the MathJax that Bokeh ships. It is loaded where the
// first formula is, from where Bokeh itself came.
const FORMULA = /\\\((.+?)\\\)|\\\[([\s\S]+?)\\\]/g;
const calm = matchMedia("(prefers-reduced-motion: reduce)");
const HOME = /bokeh(\.min)?\.js/;

function providers() {
  return Bokeh.require("models/text/providers").default_provider;
}

function script(source) {
  return new Promise((resolve, reject) => {
    const tag = document.createElement("script");
    Object.assign(tag, {src: source, onload: resolve, onerror: reject});
    document.head.append(tag);
  });
}

async function load() {
  const provider = providers();
  if (provider.MathJax) return provider.MathJax;
  await provider.fetch();
  if (!provider.MathJax) {
    const core = [...document.scripts].find(tag => HOME.test(tag.src.split("/").at(-1)));
    await script(core.src.replace(HOME, "bokeh-mathjax$1.js"));
    await provider.fetch();
  }
  return provider.MathJax;
}

async function typeset(root) {
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT), found = [];
  while (walker.nextNode()) {
    const node = walker.currentNode;
    if (!node.parentElement.closest("pre, code") && node.data.search(FORMULA) >= 0) found.push(node);
  }
  if (!found.length) return;
  window.steinlabMath ??= load();
  const math = await window.steinlabMath;
  if (!math) return;
  for (const node of found) {
    const parts = document.createDocumentFragment();
    let at = 0;
    for (const match of node.data.matchAll(FORMULA)) {
      const display = match[2] !== undefined, span = document.createElement("span");
      const tex = (match[1] ?? match[2]).trim();
      span.className = display ? "display" : "inline";
      const drawn = math.tex2svg(tex, {display, em: 14, ex: 7, containerWidth: 80 * 14});
      Object.assign(span, {role: "img", ariaLabel: tex});
      const picture = drawn.querySelector("svg") ?? drawn;
      picture.ariaHidden = "true";
      picture.removeAttribute("role");
      span.append(picture);
      nameForces(span);
      parts.append(node.data.slice(at, match.index), span);
      at = match.index + match[0].length;
    }
    parts.append(node.data.slice(at));
    node.replaceWith(parts);
  }
}

// What a part of a formula says in letters.
const letters = part =>
  [...part.querySelectorAll("[data-c]")].map(one => String.fromCodePoint(parseInt(one.dataset.c, 16))).join("");

// A part of a formula under a brace that is named after a force has its colour, and lights its arrows.
function nameForces(formula) {
  for (const part of formula.querySelectorAll("[data-mml-node=mover]")) {
    const name = part.lastElementChild;
    const force = {attraction: "attract", repulsion: "repulse"}[name && letters(name)];
    if (!force) continue;
    part.classList.add("lights", force);
    part.dataset.lights = force;
    for (const [key, value] of Object.entries({role: "button", tabindex: 0, "aria-label": FORCE[force]}))
      part.setAttribute(key, value);
    formula.role = "group";
    formula.querySelector("svg").removeAttribute("aria-hidden");  // it holds what can be pointed at
  }
}
const FORCE = {attract: "attraction", repulse: "repulsion"};

// Behind a part of a formula, to tint it.
function ground(part) {
  if (part.querySelector(":scope > .ground") || !(part instanceof SVGElement)) return;
  const box = part.getBBox(), rect = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  rect.classList.add("ground");
  for (const key of ["x", "y", "width", "height"]) rect.setAttribute(key, box[key]);
  part.prepend(rect);
}

// Words and parts of formulas that light arrows: while the mouse is over one or it has the focus; a tap keeps it.
function lights(root, model) {
  let kept = null, sent = "";
  const light = part => {
    const now = (part ?? kept)?.dataset.lights ?? "";
    if (now === sent) return;
    model.send_msg({light: sent = now});
    for (const one of root.querySelectorAll(".lights")) one.classList.toggle("lit", one.dataset.lights === now);
  };
  const of = e => e.target.closest?.(".lights");
  for (const kind of ["pointerover", "focusin"])
    root.addEventListener(kind, e => {
      const part = of(e);
      if (!part || e.pointerType === "touch") return;
      ground(part);
      light(part);
    });
  for (const kind of ["pointerout", "focusout"])
    root.addEventListener(kind, e => {
      if (of(e) && !e.relatedTarget?.closest?.(".lights") && e.pointerType !== "touch") light(null);
    });
  const keep = part => {
    ground(part);
    kept = kept?.dataset.lights === part.dataset.lights ? null : part;
    light(kept);
  };
  root.addEventListener("click", e => of(e) && keep(of(e)));
  root.addEventListener("keydown", e => {
    if (!of(e) || !["Enter", " "].includes(e.key)) return;
    e.preventDefault();
    keep(of(e));
  });
}

const PIXELS = 6;  // of a drag, for one stop of the slider
const KEYS = {ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 5, PageDown: -5};

// Say for a moment beside a number why it stays as it is.
function refuse(node, text) {
  node.parentNode.querySelectorAll(".refused").forEach(old => old.remove());
  const said = Object.assign(document.createElement("span"), {className: "refused", role: "alert", textContent: ` (${text}) `});
  node.after(said);
  setTimeout(() => said.remove(), 10000);
}

// A number that is a slider: drag it, use the arrow keys, or type.
function dial(node, model) {
  const name = node.dataset.dial;
  const facts = () => model.dials[name];
  const tell = () => {
    const now = facts();
    if (!now || node.querySelector("input")) return;
    node.classList.add("dial");
    node.textContent = now.text;
    const said = {role: "slider", tabindex: 0, "aria-label": now.label, "aria-valuenow": now.value,
      "aria-valuetext": now.text, "aria-valuemin": now.low, "aria-valuemax": now.high, title: "Drag, arrow keys, or type"};
    for (const [key, value] of Object.entries(said)) node.setAttribute(key, value);
  };
  const type = first => {
    const field = Object.assign(document.createElement("input"), {value: first ?? facts().text, inputMode: "decimal"});
    field.ariaLabel = facts().label;
    node.replaceChildren(field);
    field.focus();
    if (first === undefined) field.select();
    let over = false;
    const end = (take, refocus) => {
      if (over) return;
      over = true;
      const text = field.value.trim(), value = Number(text.replace(",", ".").replace("\u2212", "-"));
      const {low, high} = facts();
      if (take && text && value >= low && value <= high) model.send_msg({dial: name, value});
      else if (take && text) refuse(node, `${text} is not allowed; allowed: ${+low.toPrecision(4)} to ${+high.toPrecision(4)}`);
      field.remove();
      tell();
      if (refocus) node.focus();
    };
    field.addEventListener("keydown", e => {
      e.stopPropagation();
      if (e.key === "Enter" || e.key === "Escape") end(e.key === "Enter", true);
    });
    field.addEventListener("blur", () => end(true, false));
  };
  let from = null, moved = false;
  node.addEventListener("pointerdown", e => {
    if (!facts() || e.button || node.querySelector("input")) return;
    from = e.clientX;
    moved = false;
    node.setPointerCapture(e.pointerId);
  });
  node.addEventListener("pointermove", e => {
    if (from === null) return;
    const steps = Math.trunc((e.clientX - from) / PIXELS);
    if (!steps) return;
    from += steps * PIXELS;
    moved = true;
    model.send_msg({dial: name, steps});
  });
  for (const kind of ["pointerup", "pointercancel"])
    node.addEventListener(kind, e => {
      if (from !== null && !moved && kind === "pointerup") type();
      from = null;
    });
  node.addEventListener("keydown", e => {
    if (!facts() || e.target !== node || e.ctrlKey || e.metaKey || e.altKey) return;
    if (KEYS[e.key]) model.send_msg({dial: name, steps: KEYS[e.key]});
    else if (/^[-0-9.]$/.test(e.key)) type(e.key);
    else if (e.key === "Enter") type();
    else return;
    e.preventDefault();
  });
  return tell;
}

// A fold that stays as the reader has left it, over lessons and visits.
function remember(fold) {
  const key = `steinlab.${fold.dataset.remember}`;
  try {
    fold.open = localStorage.getItem(key) === "open";
    fold.addEventListener("toggle", () => localStorage.setItem(key, fold.open ? "open" : "shut"));
  } catch {
    // the browser keeps nothing
  }
}

// A moving picture's end, for those who want no motion.
function stopped(picture) {
  picture.setCurrentTime(9);
  picture.pauseAnimations();
}

export function render({model, el}) {
  const root = document.createElement("div");
  root.className = model.lesson ? "prose lesson" : "prose";
  if (model.anchor) root.id = model.anchor;
  el.append(root);
  let dials = [], leave = () => {};
  const tell = () => dials.forEach(each => each());
  const show = () => {
    leave();
    root.innerHTML = model.html;
    leave = predictions(root, key => model.send_msg({run: key}));
    if (model.terms) markTerms(root);
    dials = [...root.querySelectorAll("[data-dial]")].map(node => dial(node, model));
    tell();
    root.querySelectorAll("details[data-remember]").forEach(remember);
    typeset(root);
    if (calm.matches) root.querySelectorAll("svg").forEach(stopped);
  };
  // A link within the app goes there without a reload; with a modifier, or to another tab, it is the browser's.
  root.addEventListener("click", e => {
    const link = e.target.closest("a[href^='?']");
    if (!link || link.target || e.ctrlKey || e.metaKey || e.shiftKey || !model.inside) return;
    e.preventDefault();
    model.send_msg({go: link.getAttribute("href")});
  });
  lights(root, model);
  model.on("html", show);
  model.on("dials", tell);
  model.on("remove", () => leave());
  show();
}
