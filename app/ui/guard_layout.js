// A figure on a page that was added later is measured before it has a layout, and Bokeh then throws an error.
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
