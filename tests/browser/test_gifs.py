"""A GIF of what a page shows, made on the server."""

from io import BytesIO

import pytest
from chromium import executable
from PIL import Image
from playwright.sync_api import expect
from test_replays import saved

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("link, ready", [
    ("target=banana&methods=svgd&method.particles=5&steps=20", "window.steinlab?.step[0] === 20"),
    ("page=collapse&methods=svgd&dims=2,10,40", "window.Bokeh?.index?.roots[0]?.is_idle"),
])  # fmt: skip
def test_a_page_makes_a_gif_of_its_link(open_tab, tmp_path, link, ready):
    executable()
    tab = open_tab(f"?{link}", ready)
    tab.button("Share").click()
    tab.page.get_by_role("menuitem", name="GIF").click()
    dialog = tab.page.get_by_role("dialog")
    expect(dialog.get_by_role("button", name="Cancel")).to_be_visible()
    said = dialog.get_by_text("The GIF has")
    said.wait_for(timeout=150_000)
    file = saved(tab.page, tmp_path / "run.gif")
    assert f"{file.stat().st_size / 1e6:.2f} MB" in said.inner_text()
    gif = Image.open(BytesIO(file.read_bytes()))
    assert gif.size == (1280, 720) and gif.n_frames > 3  # what stays is one picture
    dialog.get_by_role("button", name="Close").click()
    expect(tab.page.get_by_role("dialog")).to_have_count(0)
