"""`steinlab.watch`: what a loop shows, what is recorded and refused. tests/browser has the page."""

import io
import socket
import subprocess
import sys
import time
import urllib.request
from types import SimpleNamespace
from unittest.mock import Mock

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from checks import until

import steinlab
from stein_core import Spec, from_numpyro
from stein_core.targets.own.numpyro_models import ModelWarning
from steinlab.watching import loop, opening
from steinlab.watching.feed import Feed
from steinlab.watching.page import Watched
from steinlab.watching.picture import READ_OUTS, panel_of
from steinlab.watching.pipe import get, put
from steinlab.watching.recording import MOST_BYTES, MOST_FRAMES, Recording, Seen
from steinlab.watching.still import GHOSTS


class Silent:
    """A process that answers at once, and keeps what it hears."""

    def __init__(self, *arguments, **keywords):
        self.stdin, self.stdout = Kept(), io.BytesIO(b'{"port": 1}\n')

    def kill(self):
        self.stdin.broken = True

    def wait(self):
        pass


class Kept(io.BytesIO):
    broken, heard = False, b""

    def write(self, data):
        if self.broken:
            raise BrokenPipeError
        self.heard += data
        return len(data)

    def close(self):
        pass


@pytest.fixture
def silent(monkeypatch):
    monkeypatch.setattr(loop.subprocess, "Popen", Silent)
    monkeypatch.setattr(loop, "FRAMES", 1e9)
    monkeypatch.setattr(loop, "SHARE", 1e9)  # every step is taken


def settled(see, frames):
    """Wait until so many frames are recorded."""
    until(lambda: see.recording["step"], lambda steps: len(steps) >= frames, pause=0.002)


def heard(see):
    """The messages that the page got."""
    pipe = io.BytesIO(see._process.stdin.heard)
    return list(iter(lambda: get(pipe), None))


def test_a_message_comes_as_it_was_sent_and_half_a_message_is_none():
    pipe = io.BytesIO()
    put(pipe, {"step": 3}, np.arange(4.0), np.ones((2, 1)))
    sent = pipe.getvalue()
    head, values = get(io.BytesIO(sent))
    assert head == {"step": 3} and values.tolist() == [0, 1, 2, 3, 1, 1]
    assert all(get(io.BytesIO(sent[:cut])) is None for cut in range(len(sent)))


def test_a_recording_thins_and_keeps_the_first_and_the_last_frame(tmp_path):
    kept = Recording(("a", "b"))
    for step in range(3 * MOST_FRAMES):
        kept.add(Seen(step, step / 10, np.full((4, 2), step, np.float32)))
    steps = [frame.step for frame in kept.frames]
    assert steps[0] == 0 and steps[-1] == 3 * MOST_FRAMES - 1 and steps == sorted(set(steps))
    assert MOST_FRAMES // 2 < len(steps) <= MOST_FRAMES
    large = Recording(("a",))
    for step in range(100):
        large.add(Seen(step, 0.0, np.zeros((MOST_BYTES // 80, 1), np.float32)))
    assert sum(frame.particles.nbytes for frame in large.frames) <= 1.01 * MOST_BYTES
    kept.save(str(tmp_path / "run.npz"))
    with np.load(tmp_path / "run.npz", allow_pickle=False) as read:
        assert read["particles"].shape == (len(steps), 4, 2) and read["coordinates"].tolist() == ["a", "b"]
        assert (read["particles"][:, 0, 0] == read["step"]).all() and read["seconds"][-1] == pytest.approx(599.9)


def test_every_frame_of_a_slow_loop_is_recorded_and_sent(silent, tmp_path):
    x = np.random.default_rng(0).normal(size=(30, 2))
    with steinlab.watch("banana", record=tmp_path / "run.npz") as see:
        for step in range(1, 6):
            x += 1  # in place, as a loop of NumPy does
            see(x)
            settled(see, step)
    kept = see.recording
    assert kept["step"].tolist() == [1, 2, 3, 4, 5]
    assert np.allclose(np.diff(kept["particles"], axis=0), 1) and np.allclose(kept["particles"][-1], x)
    with np.load(tmp_path / "run.npz") as read:
        assert (read["particles"] == kept["particles"]).all()
    (about, ghosts), *frames, (ended, _) = heard(see)
    assert about["title"] == "banana" and about["dim"] == 2 and len(ghosts) == 2 * GHOSTS
    assert about["variance"] == pytest.approx(1.75, rel=0.01) and about["background"]["contours"]
    # The last frame comes once more, with its Stein trace.
    assert [head["step"] for head, _ in frames] == [1, 2, 3, 4, 5, 5] and ended == {"ended": ""}
    assert np.allclose(frames[-1][1].reshape(30, 2), x)


def test_the_page_reads_what_the_loop_sends(silent):
    with steinlab.watch(Spec("gaussian", 3)) as see:
        see(np.full((4, 3), 2.0), scales=np.ones((4, 3)))
        settled(see, 1)
    feed = Feed(io.BytesIO(see._process.stdin.heard))
    feed.read()
    assert feed.ended and not feed.said and feed.recording.coordinates == see._target.coordinates
    frame = feed.recording.frames[0]
    assert (frame.particles == 2).all() and (frame.scales == 1).all() and feed.trace_at(frame) is None
    feed = Feed(io.BytesIO(see._process.stdin.heard[:-40]))
    feed.read()
    assert feed.said == "The program of the loop has ended."


def test_a_panel_has_the_moments_of_the_coordinates_that_it_draws():
    x = np.random.default_rng(1).normal(size=(50, 4)).astype(np.float32) * [1, 2, 3, 4]
    panel = panel_of(Seen(7, 0.0, x), (3, 1), 0.5)
    assert np.allclose(panel.rows[:, :2], x[:, [3, 1]]) and panel.step == 7 and not panel.has_scale
    sd, names = x.std(axis=0, ddof=1), [name for name, *_ in READ_OUTS]
    wanted = [np.mean(sd**2), 0.5, x[:, 3].mean(), sd[3], x[:, 1].mean(), sd[1]]
    assert names == ["variance", "trace", "mean_x", "sd_x", "mean_y", "sd_y"] and np.allclose(panel.metrics, wanted)
    guides = panel_of(Seen(7, 0.0, x, np.full_like(x, 2)), (0, 1), None)
    assert guides.metrics[0] == pytest.approx(np.mean(x.var(axis=0)) + 4) and guides.rows[:, 2].tolist() == [2] * 50
    assert len(panel_of(Seen(0, 0.0, np.zeros((9000, 1), np.float32)), (0, 1), None).rows) == 4096


def test_the_arrows_stop_at_the_first_and_at_the_last_frame():
    frames = tuple(Seen(step, 0.0, np.zeros((1, 1))) for step in range(3))
    page = SimpleNamespace(feed=SimpleNamespace(recording=SimpleNamespace(frames=frames)), show=Mock(), read=Mock())
    for index, step in ((-1, 0), (1, 1), (3, 2)):
        Watched.go(page, index)
        assert page.at.step == step and page.show.call_args.args == (page.at,) and not page.replaying


def test_the_stein_trace_is_that_of_the_formula(silent):
    x = np.random.default_rng(2).normal(size=(40, 2))
    with steinlab.watch(Spec("gaussian", 2)) as see:
        see(x)
        settled(see, 1)
    # The scores of a standard normal are -x.
    wanted = ((x - x.mean(axis=0)) * x).sum(axis=0) / 39
    assert see.recording["stein_trace"][0] == pytest.approx(wanted.mean(), rel=1e-5)


def test_the_last_frame_has_its_stein_trace_also_if_none_is_due(silent, monkeypatch):
    monkeypatch.setattr(loop, "TRACE_SHARE", 1e-9)  # the first took as long as others do on a busy machine
    x = np.random.default_rng(2).normal(size=(40, 2))
    with steinlab.watch(Spec("gaussian", 2)) as see:
        for step in range(1, 4):
            see(step * x)
            settled(see, step)
    kept, wanted = see.recording, ((x - x.mean(axis=0)) * x).sum(axis=0).mean() / 39
    assert kept["step"].tolist() == [1, 2, 3] and np.isnan(kept["stein_trace"][1])
    assert kept["stein_trace"][[0, 2]] == pytest.approx([wanted, 9 * wanted], rel=1e-5)
    feed = Feed(io.BytesIO(see._process.stdin.heard))
    feed.read()
    assert len(feed.recording.frames) == 3 and feed.trace_at(feed.recording.frames[-1]) == kept["stein_trace"][2]


def test_the_end_does_not_wait_for_a_stein_trace_that_takes_long(silent, monkeypatch):
    monkeypatch.setattr(loop, "TRACE_SHARE", 1e-9)
    monkeypatch.setattr(loop, "TRACE_LAST", 0.0)  # the first took longer
    with steinlab.watch(Spec("gaussian", 2)) as see:
        for step in range(1, 3):
            see(step * np.eye(2))
            settled(see, step)
    assert np.isnan(see.recording["stein_trace"]).tolist() == [False, True]
    assert [head.get("step") for head, _ in heard(see)[1:]] == [1, 2, None]


def test_a_density_that_fails_costs_the_stein_trace_and_nothing_else(silent):
    with steinlab.watch(Spec("gaussian", 2)) as see:
        see._scores = lambda points: 1 / 0
        with pytest.warns(RuntimeWarning, match="no Stein trace, ZeroDivisionError"):
            see(np.zeros((3, 2)))
            settled(see, 1)
        see(np.ones((3, 2)))
        settled(see, 2)
    assert np.isnan(see.recording["stein_trace"]).all() and (see.recording["particles"][1] == 1).all()


def test_a_loop_may_donate_its_arrays(silent):
    step = jax.jit(lambda x: x + 1, donate_argnums=0)
    x = jnp.zeros((10, 2))
    with steinlab.watch() as see:
        for _ in range(200):
            x = step(x)
            see(x)
            time.sleep(0.001)
    kept = see.recording
    assert kept["step"][-1] == 200 and len(kept["step"]) > 20
    assert (kept["particles"][:, 0, 0] == kept["step"]).all()


def test_what_a_loop_writes_over_is_copied_in_time(silent):
    with steinlab.watch() as see:
        kept = np.zeros((3, 2), np.float32)
        with see._changed:  # the other thread waits
            see(kept)
            kept += 1
        settled(see, 1)
        gone = jnp.zeros((3, 2))
        gone.delete()  # as a program does with what it takes over
        see(gone)
        until(lambda: see._donated)
        gone = jnp.full((3, 2), 2.0)
        with see._changed:
            see(gone)
            gone.delete()
        settled(see, 2)
        see(np.full((3, 2), 3.0))
    assert see.recording["particles"][:2, 0, 0].tolist() == [0, 2]


def test_compiled_loops_show_their_particles_by_a_callback_and_no_other_way(silent):
    def body(x, _):
        jax.debug.callback(see, x)
        return x + 1, None

    with steinlab.watch() as see:
        jax.block_until_ready(jax.lax.scan(body, jnp.ones((5, 2)), length=20))
        jax.effects_barrier()
    kept = see.recording
    assert kept["step"][-1] == 20 and (kept["particles"][:, 0, 0] == kept["step"]).all()
    with steinlab.watch() as see, pytest.raises(ValueError, match="traced.*jax.debug.callback"):
        jax.jit(lambda x: see(x))(jnp.ones((5, 2)))
    assert not see.recording["step"].size


def test_the_values_of_a_model_are_shown_in_its_coordinates(silent):
    def model():
        numpyro.sample("scale", dist.LogNormal(0, 1))
        numpyro.sample("at", dist.Normal(jnp.zeros(2), 1).to_event(1))

    with pytest.warns(ModelWarning, match="no observed site"):
        target = from_numpyro(model)
    values = {"scale": np.array([1.0, 2.0, 4.0]), "at": np.arange(6.0).reshape(3, 2)}
    with steinlab.watch(target, title="mine") as see:
        see(values)
        see(lambda: values)
        settled(see, 1)
        with pytest.raises(ValueError, match="no values of 'at'; there are: scale"):
            see({"scale": values["scale"]})
        see(values)
    theta = dict(zip(see.recording["coordinates"].tolist(), see.recording["particles"][0].T))
    assert np.allclose(np.concatenate([theta[name] for name in theta if "scale" in name]), np.log([1, 2, 4]))
    assert np.allclose([theta[name] for name in theta if "at" in name], values["at"].T)


def test_what_does_not_fit_is_refused_by_its_name(silent, tmp_path):
    for bad, said in (
        (np.zeros((3, 5)), r"shape \(3, 5\); allowed: \(n, 2\)"),
        (np.zeros(3), r"shape \(3,\); allowed: \(n, 2\)"),
        (np.zeros((0, 2)), "n at least 1"),
        (np.zeros((2, 3, 2)), r"shape \(2, 3, 2\)"),
    ):
        with steinlab.watch("banana") as see, pytest.raises(ValueError, match=said):
            see(bad)
    with steinlab.watch() as see:
        see(np.zeros((3, 2)))
        with pytest.raises(ValueError, match=r"had \(3, 2\) before"):
            see(np.zeros((4, 2)))
        with pytest.raises(ValueError, match="scales have shape"):
            see(np.zeros((3, 2)), np.zeros((3, 1)))
        with pytest.raises(ValueError, match="are a dict, and no target"):
            see({"a": np.zeros(3)})
        see(np.zeros((3, 2)))
    with pytest.raises(ValueError, match="banana"):
        steinlab.watch("banan")
    with pytest.raises(ValueError, match="record = .*there is no folder"):
        steinlab.watch(record=tmp_path / "no" / "run.npz")
    with pytest.raises(AttributeError, match="look"):
        steinlab.look


def test_a_notebook_shows_the_page_within_itself(silent, monkeypatch, capsys):
    shown = []
    monkeypatch.setattr("IPython.get_ipython", lambda: SimpleNamespace(kernel=object()))
    monkeypatch.setattr("IPython.display.display", shown.append)
    with steinlab.watch():
        pass
    assert shown[0].src == "http://127.0.0.1:1/" and "<iframe" in shown[0]._repr_html_()
    with steinlab.watch(show=False):
        pass
    assert len(shown) == 1 and "Watch at http://127.0.0.1:1/" in capsys.readouterr().out


def test_a_browser_opens_if_there_is_a_screen(silent, monkeypatch):
    opened = []
    monkeypatch.setattr(opening.webbrowser, "open", opened.append)
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    with steinlab.watch():
        pass
    assert not opened or sys.platform != "linux"
    opened.clear()
    monkeypatch.setenv("DISPLAY", ":0")
    with steinlab.watch(), steinlab.watch(show=False):
        pass
    assert opened == ["http://127.0.0.1:1/"]


def test_a_loop_that_fails_is_told_and_recorded(silent, tmp_path):
    with pytest.raises(KeyError), steinlab.watch(record=tmp_path / "run.npz") as see:
        see(np.zeros((3, 2)))
        settled(see, 1)
        raise KeyError("mine")
    assert heard(see)[-1][0] == {"ended": "The loop ended with KeyError: 'mine'"}
    assert (tmp_path / "run.npz").exists()


def test_a_loop_outlives_its_page(silent):
    with steinlab.watch() as see:
        see.close()
        with pytest.warns(RuntimeWarning, match="its page has ended. The loop and its recording go on"):
            see(np.zeros((3, 2)))
            settled(see, 1)
        see._warn = said = Mock()  # it is said once
        see(np.ones((3, 2)))
        settled(see, 2)
    assert not said.called


def test_a_function_is_called_only_when_a_frame_is_due(silent, monkeypatch):
    monkeypatch.setattr(loop, "FRAMES", 20.0)
    called = []
    with steinlab.watch() as see:
        began = time.monotonic()
        while time.monotonic() < began + 0.5:
            see(lambda: called.append(1) or np.zeros((3, 2)))
        took = time.monotonic() - began
    # One at the start, one at the end, and one that may be made up for.
    assert see._step > 5 * len(called) and 2 <= len(called) <= 20 * took + 3


def test_frames_are_rarer_if_they_are_dear(silent, monkeypatch):
    monkeypatch.setattr(loop, "FRAMES", 60.0)
    monkeypatch.setattr(loop, "SHARE", 0.03)
    spent = []

    def dear():
        time.sleep(0.01)
        spent.append(1)
        return np.zeros((3, 2))

    with steinlab.watch() as see:
        see(dear)  # the first may compile: it does not count
        spent.clear()
        began = time.monotonic()
        while time.monotonic() < began + 2:
            see(dear)
            time.sleep(1e-4)
    assert 2 <= len(spent) <= 25  # of 120; at 0.01 s each and 3 % it settles at three a second


SCRIPT = """
import numpy as np, steinlab
with steinlab.watch("banana", show=False) as see:
    see(np.zeros((3, 2)))
    input()
"""


@pytest.mark.long
def test_a_page_answers_on_this_machine_only_and_ends_with_its_loop():
    """A process of its own is the loop, so that its end can be seen."""
    with subprocess.Popen(
        [sys.executable, "-u", "-c", SCRIPT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as running:
        url = running.stdout.readline().split()[-1]
        port = int(url.rstrip("/").rpartition(":")[2])
        with urllib.request.urlopen(url, timeout=60) as answer:
            page = answer.read().decode()
        assert url.startswith("http://127.0.0.1:") and "Steinlab watch" in page
        assert listening(port) == {"0100007F"}  # 127.0.0.1
        running.communicate("\n")
    with urllib.request.urlopen(url, timeout=60) as answer:  # it stays for who looks at it, or reloads it
        assert answer.status == 200
    until(lambda: not listening(port), seconds=90, pause=0.5)


def listening(port):
    """The addresses at which something listens to a port, as Linux writes them."""
    found = set()
    for name in ("tcp", "tcp6"):
        with open(f"/proc/net/{name}") as table:
            for line in list(table)[1:]:
                address, state = line.split()[1], line.split()[3]
                if state == "0A" and int(address.rpartition(":")[2], 16) == port:
                    found.add(address.rpartition(":")[0])
    return found


def test_a_page_that_ends_before_it_listens_says_why(monkeypatch):
    usual = loop.subprocess.Popen
    script = [sys.executable, "-c", "raise SystemExit('no such module')"]

    def ends(command, **named):
        process = usual(script, **named)
        process.wait()
        return process

    monkeypatch.setattr(loop.subprocess, "Popen", ends)
    with pytest.raises(RuntimeError, match="could not start at 127.0.0.1, port 0: .*no such module"):
        with steinlab.watch("banana"):
            pass


def test_a_page_that_cannot_start_says_why():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with (
            pytest.raises(RuntimeError, match=f"could not start at 127.0.0.1, port {port}: .*in use"),
            steinlab.watch(port=port),
        ):
            pass
    with pytest.raises(ValueError, match="address = 'no-such-address' is unknown; allowed: '127.0.0.1'"):
        steinlab.watch(address="no-such-address")
    with pytest.raises(ValueError, match="port = 70000 is out of range; allowed: 0 to 65535"):
        steinlab.watch(port=70_000)
