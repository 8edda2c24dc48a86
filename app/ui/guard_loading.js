// A widget that is laid out while MathJax loads is unfinished until it is laid out again. A hidden one never is, and so the
// page counts as loading. No upstream issue known; Bokeh 3.10.2.
{
  let Widget = Bokeh.Models.get("panel.models.markup.HTML").prototype.default_view.prototype;
  while (!Object.hasOwn(Widget, "_after_layout")) Widget = Object.getPrototypeOf(Widget);
  if (!Widget.stays_finished) {
    Widget.stays_finished = true;
    const original = Widget._after_layout;
    Widget._after_layout = function () {
      const finished = this._has_finished;
      original.call(this);
      this._has_finished = finished;
    };
  }
}
