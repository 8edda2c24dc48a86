"""The page of a replay, without its data: the browser that has shown a run puts them in."""

from __future__ import annotations

from functools import lru_cache

from steinlab.stage.stage import HERE, plain_script, plain_style


@lru_cache(maxsize=1)
def replay_page() -> str:
    """Return a page that plays what stands in the place of `/* DATA */ null`, see `recorder.js`."""
    code = f"(() => {{\n{plain_script('replay.js')}\n}})();".replace("</", "<\\/")
    page = (HERE / "replay.html").read_text(encoding="utf-8")
    return page.replace("[[style]]", plain_style()).replace("[[script]]", code)
