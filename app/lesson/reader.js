// The keys of the page "Lessons", and scrolling to its top.
const OWN = "input, textarea, select, [contenteditable], .stage, [role=slider], [role=combobox], [role=option], " +
  "[role=menuitem], [role=tab], [role=radio]";

// What scrolls when the page does.
function scroller(el) {
  while ((el = el.parentElement ?? el.getRootNode().host))
    if (/auto|scroll/.test(getComputedStyle(el).overflowY)) return el;
  return document.scrollingElement;
}

export function render({model, el}) {
  const onKey = e => {
    if (model.lecture || !el.isConnected || !el.checkVisibility() || e.ctrlKey || e.metaKey || e.altKey) return;
    if (e.composedPath().some(node => node.matches?.(OWN))) return;
    const next = e.key === "ArrowRight" || e.key === "Enter" && e.shiftKey;
    if (!next && e.key !== "ArrowLeft") return;
    e.preventDefault();
    model.send_msg({key: next ? "next" : "previous"});
  };
  document.addEventListener("keydown", onKey);
  model.on("msg:custom", () => scroller(el).scrollTo(0, 0));
  model.on("remove", () => document.removeEventListener("keydown", onKey));
}
