"""The fields for numbers as a visitor types into them."""

from types import SimpleNamespace

import pytest
from playwright.sync_api import expect

from steinlab import notebook

pytestmark = pytest.mark.browser

PAUSED = "?target=gaussian&methods=svgd&steps=3"


def field(tab, label: str):
    return tab.page.get_by_role("textbox", name=label)


def type_into(tab, label: str, text: str, leave: str):
    """Replace what a field holds; leave: "Enter", "Tab" or "click", which is elsewhere."""
    field(tab, label).click()
    tab.page.keyboard.press("Control+a")
    tab.page.keyboard.type(text)
    if leave == "click":
        tab.page.mouse.click(900, 25)  # nothing is there in the bar
    else:
        tab.page.keyboard.press(leave)


def until_taken(tab, label: str, name: str, value: int):
    tab.wait(f"new URLSearchParams(location.search).get('{name}') === '{value}'", 20)
    expect(field(tab, label)).to_have_value(str(value))
    expect(field(tab, label)).not_to_have_attribute("aria-invalid", "true")


@pytest.mark.parametrize(
    "label, name, query",
    [
        ("Dimension", "dim", PAUSED),
        ("Draws per particle and step", "draws", "?target=gaussian&methods=vi&steps=3"),
        ("ELBO draws per particle and step", "draws", "?page=wave&methods=vi&steps=1"),
    ],
)
def test_every_edit_of_a_number_is_taken(open_tab, label, name, query):
    ready = "document.readyState === 'complete'" if "wave" in query else "window.steinlab && window.steinlab.frames > 0"
    tab = open_tab(query, ready)
    if label != "Dimension":
        tab.unfold()
    for value, leave in (
        (9, "Enter"),
        (12, "click"),
        (40, "Enter"),
        (41, "Enter"),
        (70, "Tab"),
        (71, "click"),
        (8, "click"),
    ):
        type_into(tab, label, str(value), leave)
        until_taken(tab, label, name, value)
    tab.page.get_by_role("button", name=f"More: {label}").click()
    until_taken(tab, label, name, 9)


@pytest.mark.parametrize("leave", ["Enter", "Tab", "click"])
def test_what_is_refused_says_so_and_the_next_edit_is_taken(open_tab, leave):
    tab = open_tab(PAUSED)
    for text, problem in (
        ("abc", "Dimension = 'abc' is not a number; allowed: 1 to 1000."),
        ("2.7", "Dimension = 2.7 is not a whole number; allowed: 1 to 1000."),
        ("99999", "Dimension = 99999 is out of range; allowed: 1 to 1000."),
        ("-3", "Dimension = -3 is out of range; allowed: 1 to 1000."),
    ):
        type_into(tab, "Dimension", text, leave)
        tab.page.get_by_text(problem).wait_for(timeout=20_000)
        expect(field(tab, "Dimension")).to_have_attribute("aria-invalid", "true")
        expect(field(tab, "Dimension")).to_have_value(text)  # what was typed is there to be mended
    type_into(tab, "Dimension", "30", leave)
    until_taken(tab, "Dimension", "dim", 30)
    type_into(tab, "Dimension", "abc", leave)
    expect(field(tab, "Dimension")).to_have_attribute("aria-invalid", "true")
    type_into(tab, "Dimension", "30", leave)  # back to what it was
    until_taken(tab, "Dimension", "dim", 30)


def test_a_field_of_jupyterlab_takes_text_after_the_first_cell(chromium, monkeypatch):
    """JupyterLab disables each field of a text, also when it draws the text again."""
    shown, text = [], '<div class="jp-RenderedMarkdown"><input type="text" size="50" disabled></div>'
    monkeypatch.setattr(notebook, "current_host", lambda: SimpleNamespace(lesson=False, jupyter=True))
    monkeypatch.setattr(notebook, "stay_offline", lambda: None)
    monkeypatch.setattr("IPython.display.display", lambda one: shown.append(one.data))
    notebook.start()
    page = chromium.new_page()
    page.set_content(text)
    expect(page.locator("input")).to_be_disabled()
    again = f"document.body.insertAdjacentHTML('beforeend', {text!r})"
    for script in [*shown, "document.querySelector('div').remove()", again]:
        page.evaluate(f"() => {{ {script} }}")
    page.locator("input").fill("It climbs.")
    expect(page.locator("input")).to_have_value("It climbs.")
    page.close()
