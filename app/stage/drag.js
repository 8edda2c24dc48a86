// A particle that follows the pointer.
const SLOP = 4;  // pixels: a pointer that goes no further clicks

// `at(p)` -> {map, panel, edit} of card p; `place(index, to)` draws a particle at a point, until the next frame comes.
class Drag {
  constructor(model, {at, place}) {
    Object.assign(this, {model, at, place, held: null, moved: false, raf: 0});
    this.onKey = this.onKey.bind(this);
  }

  // nearest(e): the particle under a pointer, or -1.
  listen(canvas, p, nearest) {
    canvas.addEventListener("pointerdown", e => this.press(canvas, p, nearest(e), e));
    canvas.addEventListener("pointermove", e => this.follow(e));
    for (const kind of ["pointerup", "pointercancel"]) canvas.addEventListener(kind, e => this.drop(e));
    // The page scrolls with a finger that holds nothing.
    canvas.addEventListener("touchmove", e => { if (this.held) e.preventDefault(); }, {passive: false});
  }

  press(canvas, p, index, e) {
    if (this.held) return;
    this.moved = false;
    if (index < 0 || e.button || !e.isPrimary || !this.at(p).edit) return;
    this.held = {p, index, x: e.offsetX, y: e.offsetY, step: 0, to: null};
    canvas.setPointerCapture(e.pointerId);
  }

  follow(e) {
    const {held} = this;
    if (!held || !e.isPrimary) return;
    if (!this.moved && Math.hypot(e.offsetX - held.x, e.offsetY - held.y) < SLOP) return;
    if (!this.moved) {
      this.model.send_msg({grab: true});
      addEventListener("keydown", this.onKey, true);
    }
    this.moved = true;
    held.to = this.at(held.p).map.nearest(e.offsetX, e.offsetY);
    this.place(held.index, held.to);
    this.raf ||= requestAnimationFrame(() => this.tell());
  }

  tell() {
    this.raf = 0;
    this.model.send_msg({move: this.held.index, to: this.held.to});
  }

  // A frame has come: forces have carried the particle on, but it is held.
  pin() {
    const {held} = this;
    if (!held?.to) return;
    const {step} = this.at(held.p).panel;
    this.place(held.index, held.to);
    if (step !== held.step) this.raf ||= requestAnimationFrame(() => this.tell());
    held.step = step;
  }

  drop(e) {
    if (!e.isPrimary) return;
    const late = this.raf;
    if (late) this.tell();
    cancelAnimationFrame(late);
    this.release();
  }

  // Holds nothing any more, and tells nothing more.
  release() {
    cancelAnimationFrame(this.raf);
    removeEventListener("keydown", this.onKey, true);
    Object.assign(this, {held: null, raf: 0});
  }

  onKey(e) {
    if (e.key !== "Escape") return;
    e.preventDefault();
    e.stopPropagation();  // it would end a lecture
    this.release();
    this.model.send_msg({grab: false});
  }
}
