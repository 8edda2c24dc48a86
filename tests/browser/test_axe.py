"""Every page as axe-core sees it: nothing serious or critical for somebody who cannot see well or uses no mouse."""

import time
from contextlib import closing

import pytest
from checks import PATIENCE
from chromium import UNCOVERED, Tab

from steinlab.shell import PAGES

pytestmark = pytest.mark.browser

SIZE = """(() => { const size = node => [...node.querySelectorAll('*')].reduce(
  (sum, one) => sum + 1 + (one.shadowRoot ? size(one.shadowRoot) : 0), 0); return size(document); })()"""


def violations(page) -> list[str]:
    """Return what axe-core finds on a page: rule, impact, and the first elements with their innermost selector."""
    source = pytest.importorskip("axe_playwright_python.base").AXE_SCRIPT
    page.evaluate(source)
    found = page.evaluate("axe.run({resultTypes: ['violations']})")["violations"]
    return [
        f"{rule['id']} ({rule['impact']}), {len(rule['nodes'])} times: "
        + "; ".join(node["html"][:160] for node in rule["nodes"][:3])
        for rule in found
        if rule["impact"] in ("serious", "critical")
    ]


def lasting(page, seconds: float = 30) -> list[str]:
    """Return the violations that do not go away: colours change over a while."""
    end = time.monotonic() + seconds
    while (found := violations(page)) and time.monotonic() < end:
        time.sleep(1)
    return found


# Texts below 13 pixels, scaled ones too (widths are whole pixels).
SMALL = """(() => { const small = new Set(); const walk = root => { for (const e of root.querySelectorAll('*')) {
    if (e.shadowRoot) walk(e.shadowRoot);
    const box = e.getBoundingClientRect();
    if (!box.width || !e.offsetWidth || ![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim())) continue;
    const size = parseFloat(getComputedStyle(e).fontSize) * box.width / e.offsetWidth;
    const hidden = getComputedStyle(e).visibility === 'hidden';
    if (size < 12.8 && !hidden) small.add(e.innerText + ': ' + size.toFixed(1)); } };
  walk(document.body); return [...small]; })()"""


@pytest.fixture(scope="module")
def page(chromium):
    """One page of one context for all: a new one would load every script again."""
    with closing(chromium.new_context(viewport={"width": 1280, "height": 720})) as context:
        context.set_default_timeout(1000 * PATIENCE)
        yield context.new_page()


@pytest.mark.parametrize("name", PAGES)
def test_nothing_stands_in_the_way(page, server, name):
    page.goto(f"{server.url}?page={name}&theme=default")
    page.wait_for_function(UNCOVERED)
    toggle = page.get_by_role("button", name="Toggle theme")
    toggle.wait_for()
    Tab.at_rest(lambda: page.evaluate(SIZE), still=1)  # what comes late has come
    assert lasting(page) == []
    assert page.evaluate(SMALL) == []
    page.set_viewport_size({"width": 390, "height": 844})
    Tab.at_rest(lambda: page.evaluate(SIZE), still=0.5)
    assert page.evaluate(SMALL) == []
    page.set_viewport_size({"width": 1280, "height": 720})
    toggle.click()
    page.wait_for_url("**theme=dark*")
    page.mouse.move(5, 300)
    assert lasting(page) == []


def test_axe_sees_what_is_wrong_and_looks_into_components(chromium):
    page = chromium.new_page()
    page.set_content(
        "<html lang=en><title>t</title><main><h1>h</h1><div id=host></div></main><script>"
        "document.getElementById('host').attachShadow({mode: 'open'}).innerHTML = '<button></button>'</script></html>"
    )
    (found,) = violations(page)
    assert found.startswith("button-name (critical)")
    page.close()
