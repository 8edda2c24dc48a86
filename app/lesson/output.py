"""What a notebook's cell shows."""

from __future__ import annotations

import panel as pn

from app.lesson.host import here
from app.ui.text import CSS, Text, markdown_html


class Output(pn.Column):
    """A column of components that knows where it lives. Its owner calls rest(True) when nobody sees it, rest(False) when
    someone does again, darken(on) with the theme and close() at the end; settle() waits until there is nothing to
    wait for and returns what went wrong, or "".

    markdown: what Jupyter shows in its place, or "".
    """

    def __init__(self, *objects, **params):
        self.place = here()
        self.markdown = ""
        super().__init__(*objects, **{"sizing_mode": "stretch_width", "margin": 0, **params})
        self.place.outputs.append(self)

    def servable(self, *arguments, **keywords):
        """Show it, in a served notebook with the text around it. In the Lessons page the page does that."""
        if self.place.lesson:
            return self
        texts = self.place.texts
        if texts:
            prose(markdown_html(texts.pop(0))).servable()
        super().servable(*arguments, **keywords)
        if len(texts) == 1:
            prose(markdown_html(texts.pop(0))).servable()
        return self

    def prepare(self) -> None:
        """Do what takes long before anyone looks, on the calling thread."""

    def rest(self, on: bool) -> None:
        """Nobody sees it, or someone does again."""

    def darken(self, on: bool) -> None:
        """The theme is dark, or is not."""

    def close(self) -> None:
        """It is gone."""

    def settle(self, timeout: float = 60) -> str:
        """Wait for what is being computed; what went wrong, or ""."""
        return ""

    def _repr_mimebundle_(self, include=None, exclude=None):
        if self.markdown:
            return {"text/markdown": self.markdown}, {}
        return super()._repr_mimebundle_(include, exclude)


def prose(source: str, **params):
    """A component with this HTML."""
    params = {"sizing_mode": "stretch_width", "margin": (4, 8), **params}
    if here().jupyter:  # Jupyter draws formulas in Markdown only
        return pn.pane.HTML(f'<div class="prose">{source}</div>', stylesheets=[CSS], **params)
    return Text(html=source, **params)
