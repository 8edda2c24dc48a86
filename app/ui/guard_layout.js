// BokehJS measures a figure that was added to the page before the figure has a layout, and throws.
// No upstream issue known; Bokeh 3.9.2.
{
  const Figure = Bokeh.Models.get("Plot").prototype.default_view.prototype;
  if (!Figure.unlaid) {
    Figure.unlaid = true;
    for (const name of ["_measure_layout", "_after_layout"]) {
      const original = Figure[name];
      Figure[name] = function () { if (this.layout) original.call(this); };
    }
  }
}
