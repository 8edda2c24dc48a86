"""The page of a replay, without its data: the browser that has shown a run puts them in."""

from __future__ import annotations

from functools import lru_cache

from steinlab.stage.stage import HERE, SCRIPTS
from steinlab.ui.theme import script, variables


@lru_cache(maxsize=1)
def replay_page() -> str:
    """Return a page that plays what stands in the place of `/* DATA */ null`, see `recorder.js`."""
    themes = f":root, .stage {{ {variables('light')} }} [data-theme=dark], .stage.dark {{ {variables('dark')} }}"
    code = script(*(HERE / name for name in (*SCRIPTS, "model.js"))).replace(
        "export function render", "function render"
    )
    parts = {
        "style": f"{themes}\n{(HERE / 'stage.css').read_text(encoding='utf-8')}",
        "script": f"(() => {{\n{code}\n{(HERE / 'replay.js').read_text(encoding='utf-8')}\n}})();".replace(
            "</", "<\\/"
        ),
    }
    page = (HERE / "replay.html").read_text(encoding="utf-8")
    for name, text in parts.items():
        page = page.replace(f"[[{name}]]", text)
    return page
