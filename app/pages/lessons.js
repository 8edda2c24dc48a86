// The keys of the page "Lessons", and scrolling to a cell, whose text has an id within some shadow root.
const TYPING = "input, textarea, select, [contenteditable], [role=slider], [role=combobox], [role=option]";

function find(root, id) {
  for (const node of root.querySelectorAll("*")) {
    if (node.id === id) return node;
    const found = node.shadowRoot && find(node.shadowRoot, id);
    if (found) return found;
  }
  return null;
}

// What scrolls when the page does.
function scroller(el) {
  while ((el = el.parentElement ?? el.getRootNode().host))
    if (/auto|scroll/.test(getComputedStyle(el).overflowY)) return el;
  return document.scrollingElement;
}

const READER = ["wheel", "touchstart", "pointerdown", "keydown"];

export function render({model, el}) {
  // The cell may be on its way still, and figures get their height late, so the page follows until the reader does something.
  let timer = 0;
  const stop = () => clearInterval(timer);
  const show = index => {
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches, end = performance.now() + 60000;
    let node = null, before = NaN, height = NaN, until = 0;
    stop();
    timer = setInterval(() => {
      if (performance.now() > end) stop();
      if (!node?.isConnected) node = find(document, `cell-${index}`);
      if (!node?.offsetParent) return;
      const {top} = node.getBoundingClientRect(), now = performance.now(), tall = scroller(el).scrollHeight;
      if (tall !== height) until = now + 2500; // laid out anew
      height = tall;
      const still = top === before || Number.isNaN(before);
      if (still && now < until && (top < 40 || top > 100))
        node.scrollIntoView({behavior: calm ? "instant" : "smooth", block: "start"});
      before = top;
    }, 60);
  };
  const onKey = e => {
    if (!el.isConnected || !el.checkVisibility() || e.ctrlKey || e.metaKey || e.altKey) return;
    if (e.composedPath()[0].closest?.(TYPING)) return;
    const key = {n: "next", N: "next", p: "previous", P: "previous"}[e.key] ?? (e.key === "Enter" && e.shiftKey && "next");
    if (!key) return;
    e.preventDefault();
    model.send_msg({key});
  };
  document.addEventListener("keydown", onKey);
  for (const kind of READER) addEventListener(kind, stop, {passive: true});
  model.on("msg:custom", message => show(message.show));
  model.on("remove", () => {
    stop();
    document.removeEventListener("keydown", onKey);
    for (const kind of READER) removeEventListener(kind, stop);
  });
}
