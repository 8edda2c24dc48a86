"""A GIF from a page: the job that records its link, and what the dialog says of it. In a browser: test_gifs.py."""

import pytest
from checks import until

from steinlab.ui.gif import Gifs


def test_a_gif_that_cannot_be_made_says_why():
    gifs = Gifs()
    gifs.ask("page=notation")
    assert gifs.dialog.open and gifs.bar.visible and not gifs.save.visible and gifs.stop.label == "Cancel"
    until(lambda: gifs.job.active, lambda active: not active)
    gifs.refresh()
    assert gifs.text.object.startswith("There is no GIF: LINK: page 'notation' has no run that a link repeats")
    assert not gifs.bar.visible and not gifs.save.visible and gifs.stop.label == "Close"


@pytest.mark.parametrize("how", ["button", "cross", "another"])
def test_a_gif_that_nobody_waits_for_is_given_up(how):
    gifs = Gifs()
    gifs.ask("target=banana")
    job = gifs.job
    if how == "button":
        gifs.stop.param.trigger("clicks")
    elif how == "cross":
        gifs.dialog.open = False
    else:
        gifs.ask("target=ring")
    assert job is not gifs.job and gifs.dialog.open == (how == "another")
    until(lambda: job.state, lambda state: state == "cancelled")
    gifs.close()
