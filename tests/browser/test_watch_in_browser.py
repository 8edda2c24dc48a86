"""The page of `steinlab.watch`, beside a loop of BlackJAX."""

import io
import json
import re
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from checks import until
from chromium import Tab

pytestmark = pytest.mark.browser

LOOP = """
import json, sys, time
import jax, numpy as np, optax, blackjax
import steinlab
from stein_core import Spec, target_of

spec = Spec("gaussian", 3)
target = target_of(spec)
svgd = blackjax.svgd(jax.grad(target.log_density), optax.adam(0.02))
state = svgd.init(2 * jax.random.normal(jax.random.key(0), (50, 3)) + 1)
step = jax.jit(svgd.step)
with steinlab.watch(spec, title="BlackJAX", show=False) as see:
    sys.stdin.readline()
    for _ in range(400):
        state = step(state)
        see(state.particles)
        time.sleep(0.005)
    print("waits", flush=True)
    sys.stdin.readline()
print(json.dumps(np.asarray(state.particles).tolist()), flush=True)
sys.stdin.readline()
see.close()
"""

# Whether the eighth particle is there. Between two pictures there may be none.
SEEN = """(() => {{ try {{ const [x, y] = window.steinlab.particles(0)[7];
  return Math.abs(x - {}) < 1e-4 && Math.abs(y - {}) < 1e-4; }} catch {{ return false; }} }})()"""


@pytest.fixture
def running():
    """A loop that waits for a line before it begins, before it ends, and before it closes its page."""
    with subprocess.Popen(
        [sys.executable, "-u", "-c", LOOP], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as loop:
        port = re.search(r"127.0.0.1:(\d+)", loop.stdout.readline()).group(1)

        def onward():
            loop.stdin.write("\n")
            loop.stdin.flush()

        yield SimpleNamespace(url=f"http://localhost:{port}/", onward=onward, stdout=loop.stdout)
        onward()


def test_a_loop_is_seen_paused_rewound_and_replayed(chromium, running):
    tab = Tab(chromium, running, "", "document.body.innerText !== undefined")
    page = tab.page
    page.get_by_text("waiting for the first step").wait_for()
    running.onward()
    tab.wait("window.steinlab?.step[0] > 20")
    tab.wait("Number.isFinite(window.steinlab.value(0, 'trace'))")
    tab.button("Pause").click()
    tab.button("Go on").wait_for()
    tab.until_settled()
    still = tab.step()
    assert len(tab.rows()) == 50
    assert running.stdout.readline() == "waits\n"  # the loop has gone on to its end
    assert tab.step() == still < 400
    tab.button("Go on").click()
    tab.wait("window.steinlab.step[0] > 380")  # the frame of the last step may not have been due

    running.onward()
    last = np.array(json.loads(running.stdout.readline()))
    page.get_by_text("The loop has ended at step 400").wait_for()
    tab.wait(SEEN.format(*last[7, :2]))
    tab.until_settled()
    assert np.allclose(np.array(tab.rows())[:, :2], last[:, :2], atol=1e-5)
    assert tab.stage("value(0, 'variance')") == pytest.approx(last.var(axis=0, ddof=1).mean(), rel=1e-5)
    assert tab.stage("value(0, 'trace')") == pytest.approx(last.var(axis=0, ddof=1).mean(), rel=0.05)  # scores are -x

    for shown, name in (("θ₁", "θ₃"), ("θ₂", "θ₁")):  # other coordinates
        tab.choose(shown, name)
    tab.wait(SEEN.format(*last[7, [2, 0]]))
    tab.until_settled()
    assert np.allclose(np.array(tab.rows())[:, :2], last[:, [2, 0]], atol=1e-5)
    tab.slide("Rewind", "Home")
    tab.wait("window.steinlab.step[0] < 20")
    tab.button("Replay").click()
    tab.button("Pause").wait_for()
    tab.button("Pause").click()
    tab.button("Replay").wait_for()
    tab.until_settled()
    assert 1 < tab.step() < 400
    tab.button("Replay").click()
    tab.wait("window.steinlab.step[0] === 400")
    with page.expect_download() as saved:
        tab.button("Recording as .npz").click()
    with np.load(io.BytesIO(saved.value.path().read_bytes())) as read:
        assert np.allclose(read["particles"][-1], last, atol=1e-5) and read["step"][-1] == 400

    page.set_viewport_size({"width": 390, "height": 844})
    tab.until_settled()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    until(lambda: not page.get_by_text("waiting for the first step").is_visible())
    tab.close()
