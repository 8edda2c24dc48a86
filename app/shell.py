"""The page around the pages: title, theme, and a message instead of a blank page when something fails at start."""

import html
import logging

import panel as pn
import panel_material_ui as pmui

from app.pages.particles import particles_page
from app.serving import detach_busy

log = logging.getLogger(__name__)

THEME = {
    "palette": {"primary": {"main": "#0072B2"}},
    "typography": {"fontSize": 13},
}
DARK = {"palette": {"primary": {"main": "#56B4E9"}}, "typography": {"fontSize": 13}}


def serve() -> None:
    """Make this visitor's page servable."""
    pn.extension(notifications=True, reconnect=True)
    try:
        page = build()
    except Exception as error:
        log.exception("start")
        page = pmui.Alert(
            pn.pane.HTML(html.escape(f"{type(error).__name__}: {error}. The server's log has the details.")),
            severity="error",
            title="Could not start",
        )
    page.servable(title="Steinlab")


def build() -> pmui.Page:
    """The whole page of one visitor."""
    query = {name: values[0].decode(errors="replace") for name, values in pn.state.session_args.items()}
    page = pmui.Page(
        title="Steinlab",
        sidebar_width=320,
        sx={".MuiToolbar-root": {"minHeight": "48px !important"}, ".MuiToolbar-root .title": {"fontSize": "1.15rem"}},
        theme_config={"light": THEME, "dark": DARK},
        theme_toggle=True,
        dark_theme=query.get("theme") == "dark",
    )
    detach_busy(page)
    particles_page(page, query)
    return page
