"""What we work around in the browser side of Panel and Bokeh is still there. Where a case without our mend fails, a
release has mended it: delete the file that the test names, and the test."""

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.rare]  # what a library's next version changes

SMALL = "?target=gaussian&methods=svgd&steps=40"


def without(tab, flag: str):
    """The page again, where the script that looks for this flag believes that it has run."""
    tab.page.add_init_script(f"Object.defineProperty(Object.prototype, '{flag}', {{value: true}})")
    tab.page.reload()
    tab.wait("window.steinlab?.step[0] === 40")


ECHOES = """async thumb => {
  const {data} = [...Bokeh.documents[0]._all_models.values()].find(m => m.data?.attributes.label === "Rewind");
  const sent = [], tell = value => data.setv({value}, {sync: false}), {setAttribute} = thumb;
  Bokeh.documents[0].on_change(e => { if (e.model === data && e.attr === "value" && e.sync) sent.push(e.value); });
  // A slow browser: React draws, and writes back in a later turn of the event loop.
  thumb.setAttribute = function(...a) {
    setAttribute.apply(this, a);
    const end = performance.now() + 20;
    while (performance.now() < end);
  };
  data.setv({end: 40}, {sync: false});
  let next = null;
  new MutationObserver(() => {
    if (next !== null) tell(next);
    next = null;
  }).observe(thumb, {attributes: true});
  for (let value = 10; value < 30; value += 2) {
    next = value + 1;  // comes when the first value is drawn
    tell(value);
    await new Promise(done => setTimeout(done, 200));
  }
  return sent;
}"""


@pytest.mark.parametrize("mended", [True, False])
def test_what_the_server_sets_twice_does_not_come_back_as_a_wish(open_tab, mended):
    """app/ui/drop_stale_writes.js

    Report: a React component writes an older value back. Serve a slider and set its value ten times from the server,
    one right after the other, on a slow machine: the browser sends the first values back as if a user had moved it.
    """
    tab = open_tab(SMALL)
    if not mended:
        without(tab, "echoless")
    tab.wait("window.steinlab?.step[0] === 40")
    tab.until_settled()
    sent = tab.page.evaluate(ECHOES, tab.page.get_by_role("slider", name="Rewind").element_handle())
    assert not sent if mended else sent
    tab.slide("Rewind", "Home")  # a user's wish counts as ever
    tab.wait("window.steinlab.step[0] === 0")


CONNECTION = """() => {
  const {ClientConnection} = Bokeh.require("client/connection"), {connect, send} = ClientConnection.prototype;
  const connection = {_receiver: new Date(0), token: "no valid token"}, first = connection._receiver;
  try { connect.call(connection).catch(() => {}); } catch {}
  let thrown = false;
  const opening = {readyState: WebSocket.CONNECTING, send() { throw new Error("still connecting"); }};
  try { send.call({socket: opening}, {send: socket => socket.send("")}); } catch { thrown = true; }
  return [connection._receiver === first, thrown];
}"""


@pytest.mark.parametrize("mended", [True, False])
def test_a_new_connection_reads_from_the_start_and_one_that_opens_drops_what_is_said(open_tab, mended):
    """app/ui/reconnect.js

    Report: a connection that is cut between the parts of a message never works again: `ClientConnection.connect` keeps
    the half-read receiver. And `send` throws while the socket is still connecting.
    """
    tab = open_tab(SMALL)
    if not mended:
        without(tab, "mended")
    half_read, thrown = tab.page.evaluate(CONNECTION)
    assert (half_read, thrown) == (not mended, not mended)


UNLAID = """() => {
  const view = Bokeh.Models.get("Plot").prototype.default_view.prototype;
  return ["_measure_layout", "_after_layout"].filter(name => { try { view[name].call({}); } catch { return true; } });
}"""


@pytest.mark.parametrize("mended", [True, False])
def test_a_figure_without_a_layout_is_not_measured(open_tab, mended):
    """app/ui/guard_layout.js

    Report: add a figure to a page that is hidden and show it in the same patch: `Plot._measure_layout` runs before
    there is a layout, and throws.
    """
    tab = open_tab(SMALL)
    if not mended:
        without(tab, "unlaid")
    assert tab.page.evaluate(UNLAID) == ([] if mended else ["_measure_layout", "_after_layout"])


UNDRAWN = """async () => {
  const {build_view} = Bokeh.require("core/build_views"), Model = Bokeh.Models.get("panel.models.markup.HTML");
  const model = new Model({visible: false});
  await build_view(model, {parent: null});
  try { model.visible = true; } catch { return "throws"; }
  return "fine";
}"""


@pytest.mark.parametrize("mended", [True, False])
def test_an_html_pane_may_turn_visible_before_it_is_drawn(open_tab, mended):
    """app/ui/guard_hidden.js

    Report: make `pn.pane.HTML("", visible=False)` visible before the browser has drawn it: the view has no container
    yet and throws.
    """
    tab = open_tab(SMALL)
    if not mended:
        without(tab, "undrawn")
    assert tab.page.evaluate(UNDRAWN) == ("fine" if mended else "throws")


UNFINISHED = """async () => {
  const {build_view} = Bokeh.require("core/build_views"), Model = Bokeh.Models.get("panel.models.markup.HTML");
  const view = await build_view(new Model({text: "no formula"}), {parent: null});
  view._has_finished = true;
  Object.defineProperty(view, "provider", {value: {status: "loading"}});
  view._after_layout();
  return view._has_finished;
}"""


@pytest.mark.parametrize("mended", [True, False])
def test_a_widget_that_is_laid_out_while_mathjax_loads_stays_finished(open_tab, mended):
    """app/ui/guard_loading.js

    Report: `WidgetView._after_layout` takes `_has_finished` back while MathJax loads, and nothing gives it back to a
    widget without formulas that is not laid out again, for example a hidden one. The document is then never idle. Put
    an HTML pane into a column, hide the column, and add the pane in the moment in which MathJax loads.
    """
    tab = open_tab(SMALL)
    if not mended:
        without(tab, "stays_finished")
    assert tab.page.evaluate(UNFINISHED) is mended
