// An HTML pane that turns visible before it has been drawn has no container yet, and Panel throws.
// No upstream issue known; Panel 1.9.4.
{
  const Pane = Bokeh.Models.get("panel.models.markup.HTML").prototype.default_view.prototype;
  if (!Pane.undrawn) {
    Pane.undrawn = true;
    Pane.container = document.createElement("div");  // until it has its own
  }
}
