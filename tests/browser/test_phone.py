"""Every page on a phone."""

import time
from contextlib import closing

import pytest
from chromium import UNCOVERED

pytestmark = pytest.mark.browser

CUT = """() => {
  const found = [];
  const walk = root => {
    for (const e of root.querySelectorAll("*")) {
      if (e.shadowRoot) walk(e.shadowRoot);
      const box = e.getBoundingClientRect();
      const seen = getComputedStyle(e).visibility !== "hidden" && box.width > 0 && box.height > 0;
      const within = seen && box.left < innerWidth && box.right > 0;  // the closed sidebar waits outside
      if (within && box.right > innerWidth + 0.5 && e.matches("button, canvas, input, h1, h2, h3, a"))
        found.push(e.innerText || e.ariaLabel);
    }
  };
  walk(document);
  return [found, document.documentElement.scrollWidth - innerWidth];
}"""


@pytest.mark.parametrize(
    "query",
    [
        "",
        *(
            f"?page={page}"
            for page in ("lessons", "particles", "location", "collapse", "wave", "functions", "notation")
        ),
        "?page=lessons&lesson=04",
    ],
)
def test_nothing_is_cut_off(chromium, server, query):
    with closing(chromium.new_context(viewport={"width": 390, "height": 844})) as context:
        look_at(context.new_page(), server, query)


def look_at(page, server, query):
    page.goto(server.url + query)
    page.wait_for_function(UNCOVERED)
    page.get_by_role("button", name="Toggle theme").wait_for()
    time.sleep(3)  # the sidebar goes, and what comes late has come
    assert page.evaluate(CUT) == [[], 0]
    menu, toggle = (
        page.locator(".MuiToolbar-root .MuiOutlinedInput-root").first,
        page.get_by_role("button", name="Toggle theme"),
    )
    box = menu.bounding_box()
    assert box["x"] + box["width"] <= toggle.bounding_box()["x"]
    if "collapse" in query:  # its four tabs are in two rows, not in four
        tops = {
            page.get_by_role("button", name=name, exact=True).bounding_box()["y"]
            for name in ("Variance", "Mean location", "Near-orthogonality")
        }
        assert len(tops) == 2
