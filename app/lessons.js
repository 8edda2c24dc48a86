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

export function render({model, el}) {
  // The cell may be on its way still, and what it shows may grow: for a while the page follows, unless the reader scrolls.
  let timer = 0;
  const stop = () => clearInterval(timer);
  const show = index => {
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches, until = performance.now() + 2500;
    let before = NaN;
    stop();
    timer = setInterval(() => {
      const node = find(document, `cell-${index}`);
      if (performance.now() > until) stop();
      if (!node?.offsetParent) return;
      const {top} = node.getBoundingClientRect();
      const still = top === before || Number.isNaN(before);
      if (still && (top < 40 || top > 100)) node.scrollIntoView({behavior: calm ? "instant" : "smooth", block: "start"});
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
  for (const kind of ["wheel", "touchstart", "pointerdown"]) addEventListener(kind, stop, {passive: true});
  model.on("msg:custom", message => show(message.show));
  model.on("remove", () => {
    stop();
    document.removeEventListener("keydown", onKey);
    for (const kind of ["wheel", "touchstart", "pointerdown"]) removeEventListener(kind, stop);
  });
}
