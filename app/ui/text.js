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
      span.append(drawn.querySelector("svg") ?? drawn);
      parts.append(node.data.slice(at, match.index), span);
      at = match.index + match[0].length;
    }
    parts.append(node.data.slice(at));
    node.replaceWith(parts);
  }
}

// A moving picture's end, for those who want no motion.
function stopped(picture) {
  picture.setCurrentTime(9);
  picture.pauseAnimations();
}

export function render({model, el}) {
  const root = document.createElement("div");
  root.className = "prose";
  if (model.anchor) root.id = model.anchor;
  el.append(root);
  const show = () => {
    root.innerHTML = model.html;
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
  model.on("html", show);
  show();
}
