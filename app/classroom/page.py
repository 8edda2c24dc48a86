"""The page of a follower, as one file without Panel."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from steinlab.stage.stage import HERE as STAGE, plain, plain_script, plain_style
from steinlab.stage.training_stage import TrainingStage
from steinlab.ui.legend import CSS

HERE, UI = Path(__file__).parent, STAGE.parent / "ui"

KINDS: dict[str, type[TrainingStage]] = {}  # name -> a stage that a lecturer of this process has shown


@lru_cache(maxsize=4)
def stage_script(kind: type[TrainingStage]) -> str:
    """Return the code of a stage on which networks train. It adds itself to `window.steinkinds`."""
    code = f"{plain(kind._esm)}\n{(STAGE / 'model.js').read_text(encoding='utf-8')}"
    add = f"(window.steinkinds ??= {{}}).{kind.__name__} = {{render, StageModel}};"
    return f"(() => {{\n{code}\n{add}\n}})();"


@lru_cache(maxsize=1)
def follower_page() -> str:
    """Return the page. It names no class: its address does."""
    files = (STAGE / "chart.js", UI / "predict.js", HERE / "gather.js", HERE / "follower.js")
    code = f"(() => {{\n{plain_script(*map(str, files))}\n}})();".replace("</", "<\\/")
    sheets = UI / "predict.css", STAGE / "chart.css", HERE / "follower.css"
    style = "\n".join([plain_style(), CSS, *(path.read_text(encoding="utf-8") for path in sheets)])
    page = (HERE / "follower.html").read_text(encoding="utf-8")
    return page.replace("[[style]]", style).replace("[[script]]", code)
