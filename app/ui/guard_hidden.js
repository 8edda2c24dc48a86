// An HTML pane that turns visible before it has been drawn has no container yet, and Panel throws.
// No upstream issue known; Panel 1.10.0.
{
  const Pane = Bokeh.Models.get("panel.models.markup.HTML").prototype.default_view.prototype;
  if (!Pane.undrawn) {
    Pane.undrawn = true;
    const original = Pane.initialize;
    Pane.initialize = function () {
      original.call(this);
      this.container ??= document.createElement("div");  // until it has its own
    };
  }
}
