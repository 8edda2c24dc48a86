// What the user does on a stage with mouse and keys.
const PICK = 14, FINGER = 24;  // pixels from a particle at which it is meant
const DOUBLE = 220;  // milliseconds in which a click may become a double click
const KEYS = {" ": "space", ArrowLeft: "left", ArrowRight: "right", ArrowUp: "up", ArrowDown: "down", r: "r", R: "r"};
const LECTURE = ["ArrowLeft", "ArrowRight", "Escape"];  // there they go through the tour
const TYPING = "input, textarea, select, [contenteditable], [role=slider], [role=combobox], [role=option]";

// `at(p)` -> {map, panel, edit} of card p; `hover(index)` marks a particle, `hovered()` is the marked one, -1 for none;
// `place`: see Drag.
class Input {
  constructor(model, root, {at, hovered, hover, place}) {
    Object.assign(this, {model, root, at, hovered, hover, tabbed: false, timer: 0, over: 0, drag: new Drag(model, {at, place})});
    this.listen = this.listen.bind(this);
    this.onKey = this.onKey.bind(this);
    this.onPointer = () => { this.tabbed = false; };
    document.addEventListener("keydown", this.onKey);
    document.addEventListener("pointerdown", this.onPointer);
  }

  remove() {
    clearTimeout(this.timer);
    this.drag.release();
    document.removeEventListener("keydown", this.onKey);
    document.removeEventListener("pointerdown", this.onPointer);
  }

  listen({canvas}, p) {
    const near = e => this.nearest(p, e), {drag} = this;
    drag.listen(canvas, p, near);
    for (const kind of ["pointerdown", "pointermove", "pointerup"]) {
      canvas.addEventListener(kind, e => {
        const index = drag.held?.index ?? near(e);
        this.over = p;
        this.hover(index);
        canvas.style.cursor = drag.held ? "grabbing" : index >= 0 && this.at(p).edit ? "grab" : "";
      });
    }
    canvas.addEventListener("pointerleave", () => this.hover(-1));
    canvas.addEventListener("click", e => {
      clearTimeout(this.timer);
      const {map, edit} = this.at(p);
      if (!edit || drag.moved || e.detail > 1 || near(e) >= 0 || !map.holds(e.offsetX, e.offsetY)) return;
      const add = map.data(e.offsetX, e.offsetY);
      this.timer = setTimeout(() => this.model.send_msg({add}), DOUBLE);
    });
    canvas.addEventListener("dblclick", e => { if (!drag.moved) this.drop(p, near(e)); });
  }

  nearest(p, {offsetX, offsetY, pointerType}) {
    const {map, panel} = this.at(p), rows = panel?.rows ?? [];
    let best = -1, bestDistance = pointerType === "touch" ? FINGER : PICK;
    for (let i = 0; i < rows.length; i += ROW) {
      const distance = Math.hypot(map.x(rows[i]) - offsetX, map.y(rows[i + 1]) - offsetY);
      if (distance < bestDistance) [best, bestDistance] = [i / ROW, distance];
    }
    return best;
  }

  drop(p, index) {
    if (index >= 0 && this.at(p).panel.count > 1) this.model.send_msg({remove: index});
    this.hover(-1);
  }

  onKey(e) {
    const {model, root} = this, target = e.composedPath()[0], index = this.hovered();
    if (model.embedded && !(model.lecture && e.key === " ") || !root.clientWidth || e.ctrlKey || e.metaKey || e.altKey || target.closest?.(TYPING)) return;
    // Space presses a button that was reached with Tab; after a mouse click it means play or pause again.
    if (e.key === "Tab") this.tabbed = true;
    if (e.key === " " && this.tabbed && target.closest?.("button, [role=button]")) return;
    if (model.lecture && LECTURE.includes(e.key)) return;
    if (KEYS[e.key]) model.send_msg({key: KEYS[e.key]});
    else if ((e.key === "Delete" || e.key === "Backspace") && index >= 0) this.drop(this.over, index);
    else return;
    e.preventDefault();
  }
}
