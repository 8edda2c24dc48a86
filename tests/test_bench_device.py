"""`bench device`: its rows, and its bound on the time."""

import json

import pytest

from stein_core.cli import bench_device
from stein_core.cli.main import main


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(bench_device, "SIZES", (64,))
    monkeypatch.setattr(bench_device, "DIMS", (2,))
    monkeypatch.setattr(bench_device, "SIDE", 256)


def test_each_row_says_how_fast_steps_are(small, tmp_path, capsys):
    assert main(["bench", "device", "--json", str(tmp_path / "rows.json")]) == 0
    found = json.loads((tmp_path / "rows.json").read_text())
    assert [(row["method"], row["d"], row["n"]) for row in found["rows"]] == [("svgd", 2, 64), ("smi", 2, 64)]
    for row in found["rows"]:
        flops = bench_device.flops_of(row["method"], 2, 64)
        assert row["share"] == pytest.approx(flops * row["steps_per_second"] / found["matmul_flops"])
        assert row["steps_per_second"] > 1
    assert capsys.readouterr().out.count("%") == 2


def test_what_would_exceed_the_bound_is_left_out_with_the_reason(small, capsys):
    assert main(["bench", "device", "--seconds", "5"]) == 0
    assert capsys.readouterr().out.count("left out: it takes about 10 s") == 2
    assert main(["bench", "device", "--seconds", "0"]) == 2
    assert "--seconds = 0.0 is out of range" in capsys.readouterr().err


def test_what_does_not_fit_into_memory_is_left_out_with_the_reason(small, monkeypatch, capsys):
    monkeypatch.setenv("STEINLAB_MEMORY_GB", "0.000001")
    assert main(["bench", "device"]) == 0
    assert capsys.readouterr().out.count("GB of memory") == 2
