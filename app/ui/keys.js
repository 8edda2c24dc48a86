// The keys of a lecture on a page that has no stage to hear them.
const TYPING = "input, textarea, select, [role=slider], [role=combobox], [role=menu], [role=tab], [contenteditable]";
const LECTURE_KEYS = {Escape: "p", ArrowLeft: "left", ArrowRight: "right"};

export function render({model, el}) {
  const onKey = e => {
    if (!el.checkVisibility() || e.ctrlKey || e.metaKey || e.altKey || e.composedPath()[0].closest?.(TYPING)) return;
    const key = e.key === "p" || e.key === "P" ? "p" : model.lecture && LECTURE_KEYS[e.key];
    if (!key) return;
    model.send_msg({key});
    e.preventDefault();
  };
  const onResize = () => { if (el.checkVisibility()) model.send_msg({height: innerHeight}); };
  document.addEventListener("keydown", onKey);
  addEventListener("resize", onResize);
  model.on("remove", () => {
    document.removeEventListener("keydown", onKey);
    removeEventListener("resize", onResize);
  });
  model.send_msg({height: innerHeight});
}
