"""What saves the replay of a sweep in the browser."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from panel.custom import JSComponent

from steinlab.stage.stage import HERE as STAGE, OFFER
from steinlab.ui.theme import script


class Keeper(JSComponent):
    """Ask whether to save a replay, or its film, and say its size."""

    _esm = script(STAGE / "svg.js", STAGE / "film.js", Path(__file__).parent / "keeper.js")
    _stylesheets: ClassVar = [OFFER]

    def offer(self, kind: str, page: str, count: int, dark: bool) -> None:
        """Ask.

        Args:
            kind: "html" or "webm".
            page: of `steinlab.pages.collapse.kept.replay_of`.
            count: how many frames it has.
            dark: the theme of the question.
        """
        self._send_msg({"kind": kind, "page": page, "count": count, "dark": dark})
