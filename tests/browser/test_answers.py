"""Every page opens on its answer: its question and its picture are there before anything is compiled.

`pytest -s` says after how many seconds.
"""

import time

import pytest
from chromium import Server

pytestmark = pytest.mark.browser

# Page -> what it says, and what its picture must have.
ANSWERS = {
    "index": ("Can you trust this model's uncertainty?", "document.body && true"),
    "particles": (
        "SVGD huddles near the mode, SMI keeps the arms.",
        "window.steinlab?.value(0, 'sample_variance') < 0.1 && window.steinlab.value(1, 'sample_variance') > 0.8",
    ),
    "location": (
        "two guides split along one axis",
        "window.steinlab?.count[0] === 2 && window.steinlab.fixed[0].length > 0",
    ),
    "collapse": ("variance falls like 1/d", "Bokeh.documents.length > 0"),
    "wave": ("band is narrow", "window.steinwave?.pictures > 0"),
    "functions": ("is almost certain", "window.steinfunctions?.pictures > 0"),
    "samplers": ("The discrepancy is small and the masses are wrong", "window.steinlab?.step[0] >= 12000"),
    "posterior": ("Too narrow, worst in log sd", "true"),
    "benchmarks": ("within two standard errors", "true"),
    "lessons": ("What does SVGD do when there is one particle", "window.steinlab?.particles(0).length === 1"),
    "lecture": ("Prepare a lecture", "true"),
}
WITHOUT_PROGRAMS = """
import sys
from concurrent.futures import Future

sys.path.insert(0, ".")
from steinlab.server.background import Threads

usual = Threads.submit
Threads.submit = lambda self, *work: Future() if "compile" in self.name else usual(self, *work)

from panel.command import main

sys.argv[0] = "panel"
main()
"""


@pytest.fixture(scope="module")
def frozen(tmp_path_factory):
    """A server on which nothing is compiled."""
    folder = tmp_path_factory.mktemp("frozen")
    (folder / "frozen.py").write_text(WITHOUT_PROGRAMS)
    server = Server(folder, panel=(str(folder / "frozen.py"),))
    yield server
    server.stop()


@pytest.mark.parametrize("page", ANSWERS)
def test_a_page_shows_its_question_and_its_answer_before_anything_compiles(frozen, chromium, page):
    said, picture = ANSWERS[page]
    context = chromium.new_context(viewport={"width": 1440, "height": 900})
    tab, errors = context.new_page(), []
    tab.on("pageerror", lambda error: errors.append(str(error)))
    tab.goto(frozen.url + f"?page={page}")
    tab.wait_for_function("document.getElementById('loader')?.style.display === 'none'", timeout=60_000)
    began = time.monotonic()
    text = tab.get_by_text(said).locator("visible=true").first
    text.wait_for(timeout=60_000)
    tab.wait_for_function(picture, timeout=60_000)
    took = time.monotonic() - began
    box = text.bounding_box()
    assert box["y"] + box["height"] < 900, "without scrolling"
    assert not errors
    context.close()
    print(f"{page}: {took:.2f} s after the page had come")
