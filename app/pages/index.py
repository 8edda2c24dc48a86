"""The front door: what this is, the lessons, the pages."""

from __future__ import annotations

from app.pages.lessons import listing
from app.text import Text


class Index:
    """See `app.shell` for the contract of a page."""

    def __init__(self, shell, query: dict[str, str]):
        self.sidebar, self.main = [], [Text(html=listing("", {}), go=shell.go)]

    def show(self):
        """Nothing runs here."""

    hide = refresh = show

    def link(self) -> str:
        return ""
