"""Page "Notation and references": generated from the code and its registries."""

from __future__ import annotations

from app.text import Text, markdown_html


class Notation:
    """See `app.shell` for the contract of a page."""

    def __init__(self, shell, query: dict[str, str]):
        self.sidebar, self.main = [], [Text(html=markdown_html("# Notation"), go=shell.go)]

    def show(self):
        """Nothing runs here."""

    hide = refresh = show

    def link(self) -> str:
        return ""
