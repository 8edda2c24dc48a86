"""`steinlab record LINK`: what it writes without a browser, what it refuses. A browser: test_record_in_browser.py."""

import base64
import gzip
import json
import os

import numpy as np
import pytest
from test_cli import run  # noqa: F401  (a fixture)

from steinlab.pages.collapse.grid import Grid, shipped
from steinlab.pages.collapse.series import points_of
from steinlab.pages.wave.session import WaveSession
from steinlab.pages.wave.setup import WaveSetup
from steinlab.site import film, record as of_app
from steinlab.stage import training_recorder
from steinlab.stage.recorder import COLUMNS, FINE, parts_of, recorded, run_of
from steinlab.stage.scene import SideBySide
from steinlab.stage.setup import Setup

LINK = "target=banana&methods=svgd&optimizer=sgd&method.particles=5&seed=3"


def kept(path) -> dict:
    """What a replay holds."""
    return json.JSONDecoder().raw_decode(path.read_text().partition("const REPLAY = ")[2])[0]


def decoded(replay) -> list[np.ndarray]:
    """The frames of a replay: `decoded` of recorder.js."""
    data = gzip.decompress(base64.b64decode(replay["data"]))
    head = np.frombuffer(data, "<f4", replay["heads"])
    low, high = np.frombuffer(data, np.uint8, offset=head.nbytes).reshape(2, -1).astype(np.uint16)
    moves, before, frames, h, at = (low | high << 8).view(np.int16), {}, [], 0, 0
    for _ in range(replay["count"]):
        parts, h = [head[h : h + 3]], h + 3
        for p in range(int(parts[0][1])):
            length = 6 + int(head[h + 4]) + 2 * int(head[h + 5])
            own, m, h = head[h : h + length], int(head[h]), h + length
            now, at = moves[at : at + COLUMNS * m], at + COLUMNS * m
            before[p] = now = now + before[p] if p in before and len(before[p]) == len(now) else now
            parts += [own, (now.reshape(COLUMNS, m) / FINE * np.array(replay["scales"][p])[:, None]).T.ravel()]
        frames.append(np.concatenate(parts))
    assert at == len(moves) and h == len(head)
    return frames


@pytest.mark.parametrize("methods", ["svgd", pytest.param("svgd,smi", marks=pytest.mark.long)])
def test_a_replay_holds_the_frames_of_the_run(run, tmp_path, methods):  # noqa: F811
    link, out = f"{LINK.replace('svgd', methods)}&changes=10~add~0.5,0.5;12~method.alpha~0.5", tmp_path / "run.html"
    code, said, err = run(
        "record", f"http://localhost:5006/app?{link}&page=particles#top", "--out", out, "--steps", 30, "--every", 7
    )
    assert code == 0 and not err and said.endswith(f"open {out}\n") and f"{out.stat().st_size / 1e6:.2f} MB" in said
    setup, problems = Setup.from_query(dict(part.split("=") for part in link.split("&")))
    frames, diverged = recorded(run_of(setup, SideBySide()), SideBySide(), 30, 7)
    replay = kept(out)
    found = decoded(replay)
    assert not problems and not diverged and len(found) == len(frames) == replay["count"]
    assert [frame[4] for frame in found] == [0, 7, 14, 21, 28, 30]  # the step of the first panel
    assert [frame[3] for frame in found] == [5, 5, 6, 6, 6, 6]  # its particles
    for got, wanted in zip(found, frames):
        assert len(got) == len(wanted) and (got[:3] == wanted[:3]).all()
        panels = zip(parts_of(got), parts_of(wanted), replay["scales"])
        for (got_head, got_rows), (head, rows), scales in panels:
            np.testing.assert_array_equal(got_head, head)
            assert (np.abs(got_rows - rows) <= 0.51 / FINE * np.array(scales) + 1e-6).all()
    cards, (background,) = replay["scene"]["cards"], replay["scene"]["backgrounds"]
    assert [(card["title"], card["edit"]) for card in cards] == [(name.upper(), False) for name in methods.split(",")]
    assert background["contours"] and background["usual"] > 0


@pytest.mark.parametrize("link, titles, label, first", [
    ("page=location&axis=variance", ["SMI: locations", "SMI: scales", "SVGD: locations"], "variance of θ₂", [0, 1, 2]),
    ("page=samplers&method.particles=5&ui=min", ["KSIVI"], "θ₂", [0, 20, 40]),
    ("page=remedy&axes=3,4&methods=svgd,blocks&dim=5", ["SVGD", "Block SVGD"], "θ₄", [0, 5, 10]),
])  # fmt: skip
def test_every_page_on_which_particles_move_is_recorded_as_it_shows_them(run, tmp_path, link, titles, label, first):  # noqa: F811
    out = tmp_path / "run.html"
    code, _, err = run("record", link, "--out", out, "--steps", 2 * first[1])
    replay = kept(out)
    found, scene = decoded(replay), replay["scene"]
    assert code == 0 and not err and [frame[4] for frame in found] == first
    assert [card["title"] for card in scene["cards"]] == titles
    head = [own for own, _ in parts_of(found[-1])][min(1, len(titles) - 1)]
    assert scene["backgrounds"][int(head[3])]["labels"][1] == label
    assert set(replay["show"]) == set(replay["marks"]) and any(replay["show"].values())


def test_a_sweep_fills_in_run_by_run(run, tmp_path):  # noqa: F811
    out = tmp_path / "run.html"
    code, said, err = run("record", "page=collapse&theme=dark", "--out", out)
    replay = kept(out)
    assert code == 0 and not err and replay["dark"] and out.stat().st_size < 400e3
    cells, names = replay["cells"], [one["name"] for one in replay["scene"]["names"]]
    assert names == ["SVGD", "Annealed SVGD", "VI", "SMI"] and len(cells) == 120
    points = points_of(shipped_rows(), "sample_variance", "dim", True)
    newest = {cell[0]: cell for cell in cells}
    assert len(newest) == len(points) == 40
    wanted = sorted((round(point.mean, 4), round(point.low, 4)) for point in points)
    np.testing.assert_allclose(sorted((cell[3], cell[4]) for cell in newest.values()), wanted, rtol=2e-3, atol=1e-4)
    first = cells[0]  # one seed has no error bar
    assert first[3] == first[4] == first[5] and any(cell[4] < cell[5] for cell in cells)
    lawful = {one["name"] for one, at in zip(replay["scene"]["names"], replay["scene"]["series"]) if not at["joins"]}
    assert "SVGD" in lawful and "SMI" not in lawful and "exact law" in replay["legend"]


def shipped_rows() -> list[dict]:
    """What ships of the plain grid of page "Variance collapse"."""
    return [row for key, row in shipped()["rows"].items() if key in Grid().recipes()]


@pytest.mark.long
def test_a_sweep_computes_what_nobody_has_computed(run, tmp_path):  # noqa: F811
    link, out = "page=collapse&methods=svgd&dims=2,3&particles=3&seeds=1&kernels=imq", tmp_path / "run.html"
    code, _, err = run("record", link, "--out", out)
    cells = kept(out)["cells"]
    assert code == 0 and not err and len(cells) == 2 and [cell[6] for cell in cells] == [1, 1]  # full: computed here


@pytest.mark.long
@pytest.mark.parametrize("target", ["banana", "ring", "funnel", "gaussian&dim=50"])
def test_a_replay_of_300_frames_and_50_particles_is_small(run, tmp_path, target):  # noqa: F811
    link = f"target={target}&methods=svgd&method.particles=50"
    code, _, _ = run("record", link, "--out", tmp_path / "run.html")
    assert code == 0 and kept(tmp_path / "run.html")["count"] == 301
    assert (tmp_path / "run.html").stat().st_size < 400e3


@pytest.mark.parametrize("more, arguments, dark, shown", [
    ("", [], False, {"attract", "repulse", "guides", "trails"}),
    ("&theme=dark&show=guides,draws&ui=min", [], True, {"guides", "draws"}),
    ("&theme=dark&show=guides", ["--theme", "light", "--marks", "attract,trails"], False, {"attract", "trails"}),
])  # fmt: skip
def test_the_look_is_that_of_the_link_or_of_the_options(run, tmp_path, more, arguments, dark, shown):  # noqa: F811
    out = tmp_path / "run.html"
    code, _, _ = run("record", f"{LINK}&steps=2{more}", "--out", out, *arguments)
    replay = kept(out)
    assert code == 0 and replay["count"] == 3 and replay["dark"] == dark  # as many steps as the link has
    assert {name for name, on in replay["show"].items() if on} == shown
    assert replay["marks"]["draws"] == "exact draws"


@pytest.mark.parametrize("link, arguments, message", [
    ("target=banan", [], "did you mean 'banana'"),
    ("target=banana&seed=x", [], "LINK: seed = 'x' is not a whole number."),
    ("target=banana&methods=svgd,smi,vi,map", [], "allowed: 1 to 3 different ones."),
    ("banana", [], "LINK 'banana' has no fields; allowed: for example target=banana&methods=svgd,smi."),
    ("http://localhost:5006/app", [], "has no fields"),
    ("page=notation", [], "LINK: page 'notation' has no run that a link repeats; allowed: links of pages Particles"),
    ("page=wave&methods=svg", [], "LINK: unknown method 'svg'; did you mean 'svgd'?"),
    ("page=wave&methods=svgd", ["--marks", "trails"], "--marks = 'trails' has nothing to choose; allowed: with a"),
    (f"{LINK}&theme=blue", [], "unknown theme 'blue'"),
    ("page=collapse", ["--steps", "9"], "--steps = 9 cannot go with a sweep, whose frames are its runs; allowed: 120."),
    ("page=collapse", ["--every", "2"], "--every = 2 cannot go with a sweep"),
    ("page=collapse", ["--marks", "trails"], "--marks = 'trails' has nothing to choose; allowed: with a"),
    ("page=collapse&methods=svg", [], "LINK: unknown method 'svg'; did you mean 'svgd'?"),
    ("page=collapse&dims=1000000", [], "LINK: "),
    ("page=location&axis=z", [], "axis in the link 'z'"),
    ("page=location&methods=svgd", [], "LINK: This page always shows SMI and SVGD"),
    ("page=samplers&methods=smi", [], "LINK: SMI is not on this page; allowed: KSIVI"),
    ("page=remedy&axes=0,1", [], "axes = '0,1' in the link; allowed: two coordinates from 1 to"),
    (f"{LINK}&show=arrows", [], "LINK: unknown mark 'arrows'"),
    (LINK, ["--marks", "atract"], "--marks: unknown mark 'atract'; did you mean 'attract'?"),
    (LINK, ["--steps", "0"], "--steps = 0 is out of range; allowed: 1 to 100000."),
    (LINK, ["--every", "0"], "--every = 0 is too small; allowed: 1 or more."),
    (LINK, ["--steps", "3001"], "--every = 1 makes 3001 frames; allowed: 3000 at most, with more steps each."),
    (LINK, ["--out", "run.mp4"], "--out 'run.mp4': unknown format; allowed: .html, .webm, .gif."),
    (LINK, ["--out", "no/run.html"], "there is no such folder"),
])  # fmt: skip
def test_what_is_wrong_is_refused_and_nothing_is_written(run, tmp_path, monkeypatch, link, arguments, message):  # noqa: F811
    monkeypatch.chdir(tmp_path)
    code, out, err = run("record", link, "--out", "run.html", *arguments)
    assert code == 2 and message in err and not out and not os.listdir(tmp_path)


def test_a_link_and_a_recipe_do_not_go_together(run, tmp_path):  # noqa: F811
    with pytest.raises(SystemExit):
        run("record", LINK, "--recipe", "recipe.json", "--out", tmp_path / "run.npz")
    code, _, err = run("record", "--recipe", "recipe.json", "--out", tmp_path / "run.npz", "--theme", "dark")
    assert code == 2 and "--theme cannot go with --recipe; allowed: with LINK." in err
    code, _, err = run("record", "--recipe", "recipe.json", "--out", tmp_path / "run.html")
    assert code == 2 and "unknown format; allowed: .npz." in err


@pytest.mark.parametrize("kind", ["webm", "gif"])
def test_without_a_browser_a_film_is_refused_before_the_run(run, tmp_path, monkeypatch, kind):  # noqa: F811
    monkeypatch.setattr(of_app, "run_of", lambda *what: pytest.fail("a run has begun"))
    monkeypatch.setattr(film, "find_spec", lambda name: None)
    code, _, err = run("record", LINK, "--out", tmp_path / f"run.{kind}")
    assert code == 2 and "films and GIFs need Playwright; install it with: pip install 'steinlab[browser]'." in err
    monkeypatch.setattr(film, "find_spec", lambda name: name)
    monkeypatch.delenv("CHROME_BIN", raising=False)
    monkeypatch.setattr(film.shutil, "which", lambda name: None)
    code, _, err = run("record", LINK, "--out", tmp_path / f"run.{kind}")
    assert code == 2 and "there is no Chromium; install chromium or google-chrome, or set CHROME_BIN" in err
    monkeypatch.setenv("CHROME_BIN", "/no/such/browser")
    code, _, err = run("record", LINK, "--out", tmp_path / f"run.{kind}")
    assert code == 2 and "CHROME_BIN = '/no/such/browser' is no program" in err and not os.listdir(tmp_path)


def test_a_run_that_diverges_ends_there(run, tmp_path):  # noqa: F811
    wild, out = f"{LINK}&method.step_size=1", tmp_path / "run.html"
    code, _, err = run("record", f"{wild}&init.spread=3", "--out", out)
    steps = [int(frame[4]) for frame in decoded(kept(out))]
    assert code == 3 and steps == [*range(len(steps))] and 1 < len(steps) < 10
    assert f"error: SVGD diverged at step {len(steps)}; the recording ends there." in err
    code, _, err = run("record", f"{wild}&init.shift=100", "--out", tmp_path / "no.html")
    assert code == 2 and "SVGD diverged at the first step; allowed: a smaller method.step_size." in err
    assert os.listdir(tmp_path) == ["run.html"]


def widths(replay) -> list[int]:
    """How many numbers each frame of a training keeps."""
    return [sum(-(-n // every) for n, every, _ in replay["layouts"][at][1]) for at in replay["order"]]


def test_a_replay_of_a_training_holds_its_frames_in_whole_units(run, tmp_path):  # noqa: F811
    out = tmp_path / "run.html"
    code, said, err = run(
        "record", "page=wave&methods=map&width=2&seed=1&method.step_size=0.3", "--out", out, "--steps", 9, "--every", 4
    )
    replay = kept(out)
    assert code == 0 and not err and [len(replay[name]) for name in ("order", "layouts")] == [4, 1]
    planes = np.frombuffer(gzip.decompress(base64.b64decode(replay["data"])), np.uint8).reshape(3, -1).astype(int)
    signed = planes[0] | planes[1] << 8 | planes[2] << 16
    moves = np.where(signed % 2, -(signed + 1) // 2, signed // 2).reshape(4, -1)
    assert (moves[1:] < 0).any() and (moves[1:, 3:] > 0).any()
    frames = moves.cumsum(axis=0)
    assert frames.shape[1] == widths(replay)[0] and frames[:, 2].tolist() == [0, 4, 8, 9]  # the steps
    setup = WaveSetup(methods=("map",), width=2, seed=1, knobs={"method.step_size": 0.3})
    session = WaveSession(setup, None, print)
    session.begin_here()
    at = 0
    for part, (n, every, unit) in zip(session.look_at(9), replay["layouts"][0][1], strict=True):
        found = unit * frames[-1, at : (at := at + -(-n // every))]
        np.testing.assert_allclose(found, np.asarray(part.numbers)[::every], atol=0.501 * unit)
    assert at == frames.shape[1] and "NUTS" in replay["legend"] and replay["points"]["xy"]


@pytest.mark.long
@pytest.mark.parametrize("page", ["wave", "functions"])
def test_a_replay_of_a_training_with_300_frames_is_small(run, tmp_path, page, optimized):  # noqa: F811
    code, _, _ = run("record", f"page={page}", "--out", tmp_path / "run.html")
    assert code == 0 and len(kept(tmp_path / "run.html")["order"]) > 290
    assert (tmp_path / "run.html").stat().st_size < 400e3


def test_a_training_that_diverges_says_so(run, tmp_path, monkeypatch):  # noqa: F811
    real = training_recorder.recorded
    monkeypatch.setattr(training_recorder, "recorded", lambda *how: (real(*how)[0], {"map": 4}))
    link = "page=wave&methods=map&width=2&seed=1"
    code, _, err = run("record", link, "--out", tmp_path / "run.html", "--steps", 9, "--every", 4)
    assert code == 3 and err == "error: MAP diverged at step 5.\n" and os.listdir(tmp_path) == ["run.html"]
