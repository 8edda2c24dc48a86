"""What a notebook's cell shows."""

from __future__ import annotations

from typing import Any

import panel as pn

from steinlab.lesson.host import current_host
from steinlab.ui.text import CSS, Text


class Output(pn.Column):
    """Show components in a column that knows its host.

    The owner of the host calls `pause`, `resume`, `darken` and `close`.

    Attributes:
        host: the NotebookHost on which it was made.
        markdown: what Jupyter shows instead of the components, or "".
        has_threads: threads may use it after it was closed, see `steinlab.server.memory.dismantle`.
        dials: its sliders and selects by name, which numbers in the text can move.
    """

    has_threads = True

    def __init__(self, *objects, **params):
        self.host = current_host()
        self.markdown = ""
        self.dials: dict[str, Any] = {}
        # Without these styles Panel gives a column the height of the one figure in it, and what is beside it overlaps.
        styles = {"flex": "0 0 auto", "height": "auto"}
        super().__init__(*objects, **{"sizing_mode": "stretch_width", "margin": 0, "styles": styles, **params})
        self.host.outputs.append(self)

    def servable(self, *arguments, **keywords):
        """Show it, in a served notebook with the text around it. In page Lessons the page does that."""
        if self.host.lesson:
            return self
        texts = self.host.texts
        if texts:
            prose(texts.pop(0)).servable()
        super().servable(*arguments, **keywords)
        if len(texts) == 1:
            prose(texts.pop(0)).servable()
        return self

    def prepare(self) -> None:
        """Do slow work before anyone looks, on the calling thread."""

    def pause(self) -> None:
        """Compute nothing: nobody sees it."""

    def resume(self) -> None:
        """Go on: somebody sees it again."""

    def darken(self, on: bool) -> None:
        """Use the dark theme, or the light one."""

    def light(self, force: str) -> None:
        """Bring the arrows of "attract" or "repulse" forward, or with "" show all alike."""

    def enlarge(self, on: bool, height: int) -> None:
        """Use text and lines of twice the size, for a lecture, or not; and fit the window.

        Args:
            height: pixels of the window.
        """

    def close(self) -> None:
        """End what it runs: it is no longer shown."""

    def settle(self, timeout: float = 60) -> str:
        """Wait until nothing is being computed.

        Args:
            timeout: seconds to wait at most.

        Returns:
            A sentence about what failed, or "".
        """
        return ""

    def _repr_mimebundle_(self, include=None, exclude=None):
        if self.markdown:
            return {"text/markdown": self.markdown}, {}
        return super()._repr_mimebundle_(include, exclude)


def prose(source: str, **params):
    """Return a component that shows this HTML."""
    params = {"sizing_mode": "stretch_width", "margin": (4, 8), **params}
    if current_host().jupyter:  # Jupyter draws formulas in Markdown only
        return pn.pane.HTML(f'<div class="prose">{source}</div>', stylesheets=[CSS], **params)
    return Text(html=source, lesson=True, **params)
