"""The page "Samplers" as a visitor uses it."""

import numpy as np
import pytest

pytestmark = pytest.mark.browser

PAIR = "?page=samplers&target=unbalanced&methods=ksivi&method.particles=32&target.weight=0.7"


def test_it_trains_its_sliders_are_heard_and_its_link_repeats_the_picture(open_tab):
    tab = open_tab(PAIR)
    tab.wait("window.steinlab.step[0] > 20")
    assert tab.stage("count") == [32]
    tab.slide("mass on the right", "PageUp")
    tab.wait("!location.search.includes('target.weight=0.7&') && location.search.includes('target.weight')")
    tab.pause()
    at = tab.step()
    tab.button("Step").click()
    tab.wait(f"window.steinlab.step[0] === {at + 1}")
    tab.until_settled()
    tab.wait(f"location.search.includes('steps={at + 1}')")
    link, rows = tab.page.evaluate("location.search"), np.array(tab.rows())
    assert np.isfinite(rows).all() and rows[:, :2].std() > 0.1
    again = open_tab(link)
    again.wait(f"window.steinlab.step[0] === {at + 1}")
    again.until_settled()
    again.pause() if again.page.get_by_role("button", name="Pause").count() else None
    assert again.stage("count") == [32] and again.step() == at + 1


def test_methods_stand_side_by_side_and_another_target_is_drawn(open_tab):
    tab = open_tab("?page=samplers&target=x_shaped&methods=mala,mied&method.particles=16")
    tab.wait("window.steinlab.step[0] > 10 && window.steinlab.step[1] > 10")
    tab.choose("X shape of KSIVI", "Banana of KSIVI")
    tab.wait("location.search.includes('banana') && window.steinlab.step[0] > 3")
    tab.page.get_by_text("Banana").first.wait_for()
