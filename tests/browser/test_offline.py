"""A page whose connection is cut."""

import time

import pytest

pytestmark = pytest.mark.browser

# Its sockets are closed, and new ones find nobody.
CUT = """window.usual = window.WebSocket;
window.WebSocket = class extends window.usual { constructor(url, ...more) { super("ws://localhost:1/", ...more); } };
window.sockets.forEach(socket => socket.close());"""
SHEET = "document.getElementById('offline')"
UNDER = """([x, y]) => { let e = document.elementFromPoint(x, y);
  while (e?.shadowRoot?.elementFromPoint(x, y) && e.shadowRoot.elementFromPoint(x, y) !== e)
    e = e.shadowRoot.elementFromPoint(x, y);
  return e.closest('button')?.innerText ?? e.id; }"""


def test_a_page_without_a_connection_is_grey_and_takes_no_click_until_it_is_back(open_tab):
    tab = open_tab("?target=gaussian&methods=svgd")
    tab.wait("window.steinlab.step[0] > 20")
    box = tab.button("Pause").bounding_box()
    at = [box["x"] + box["width"] / 2, box["y"] + box["height"] / 2]
    assert "PAUSE" in tab.page.evaluate(UNDER, at).upper()
    tab.page.evaluate(CUT)
    tab.wait(SHEET, 20)
    assert tab.page.evaluate(UNDER, at) == "offline"
    tab.page.mouse.click(*at)
    tab.page.keyboard.press("Space")
    tab.page.keyboard.press("r")
    time.sleep(1)
    said = tab.page.get_by_text("Server connection lost").first  # above the sheet
    said.wait_for(timeout=20_000)
    place = said.bounding_box()
    assert tab.page.evaluate(UNDER, [place["x"] + 5, place["y"] + 5]) != "offline"
    tab.page.evaluate("() => { window.WebSocket = window.usual; }")
    tab.wait(f"!{SHEET}", 60)
    before = tab.step()
    tab.wait(f"window.steinlab.step[0] > {before} + 20")  # neither the click nor a key has paused or reset it
    tab.pause()
    cut = ("Error in connection establishment", "Failed to connect to Bokeh server")  # the browser says so itself
    tab.errors[:] = [error for error in tab.errors if not any(text in error for text in cut)]
