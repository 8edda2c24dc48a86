// Acknowledges pictures once they were painted, and hears the keys of the page.
const KEYS = {" ": "space", ArrowRight: "right", r: "r", R: "r", Delete: "delete"};

export function render({model}) {
  const onKey = e => {
    const at = e.composedPath()[0];
    if (e.ctrlKey || e.metaKey || e.altKey || !KEYS[e.key]) return;
    if (at.closest?.("input, textarea, select, button, [role=slider], [role=combobox], [role=menu], [contenteditable]")) return;
    e.preventDefault();
    model.send_msg({key: KEYS[e.key]});
  };
  // Two frames on: Bokeh paints what came with the picture in the first.
  const onMessage = message => requestAnimationFrame(() => requestAnimationFrame(() => {
    window.steinwave = {pictures: (window.steinwave?.pictures ?? 0) + 1};
    model.send_msg({ack: message.ping});
  }));
  document.addEventListener("keydown", onKey);
  model.on("msg:custom", onMessage);
  model.on("remove", () => document.removeEventListener("keydown", onKey));
  model.send_msg({ready: true});
}
