"""The pages of a replay, without their data: who has recorded a run puts them in."""

from __future__ import annotations

from functools import lru_cache

from steinlab.stage.stage import HERE, plain, plain_script, plain_style, plain_tokens
from steinlab.stage.training_stage import TrainingStage
from steinlab.ui.legend import CSS
from steinlab.ui.theme import script

CHART = [f"{name}.js" for name in "svg draw film swatches chart chart_replay model replay".split()]
DATA = "/* DATA */ null"  # where the frames stand


@lru_cache(maxsize=1)
def replay_page() -> str:
    """Return a page that plays what stands in the place of `DATA`, see `recorder.js`."""
    return _page(plain_script("replay.js"), plain_style())


@lru_cache(maxsize=4)
def training_page(kind: type[TrainingStage]) -> str:
    """Return the same for a stage on which networks train, see `training_recorder.js`."""
    player = "\n".join((HERE / name).read_text(encoding="utf-8") for name in ("model.js", "replay.js"))
    return _page(f"{plain(kind._esm)}\n{player}", f"{plain_tokens()}\n{CSS}")


@lru_cache(maxsize=1)
def chart_page() -> str:
    """Return the same for a sweep, see `chart_replay.js`."""
    style = f"{plain_tokens()}\n{CSS}\n{(HERE / 'chart.css').read_text(encoding='utf-8')}"
    return _page(script(*map(HERE.joinpath, CHART)), style)


def _page(code: str, style: str) -> str:
    code = f"(() => {{\n{code}\n}})();".replace("</", "<\\/")
    page = (HERE / "replay.html").read_text(encoding="utf-8")
    return page.replace("[[style]]", style).replace("[[script]]", code)
