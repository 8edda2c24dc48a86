"""The bar on top of every page: the menu, and what the page offers there: its tour, its lecture, what can be shared."""

from __future__ import annotations

import weakref
from collections.abc import Callable

import panel_material_ui as pmui

NO_STOPS = ("index", "lecture")  # pages that are no stop of a lecture
PHONE = "@media (max-width: 600px)"
SELECT = {
    "minWidth": "0",
    PHONE: {"maxWidth": "calc(100vw - 240px)"},
    "color": "inherit !important",
    "&& .MuiSelect-select, && .MuiSvgIcon-root": {"color": "inherit !important"},
    "& .MuiSelect-select": {"py": "5px", "fontSize": "0.95rem"},
    "& fieldset": {"border": "0"},
}
# Text buttons; on a phone their icons alone.
BUTTON = {
    "color": "inherit",
    "fontSize": "14px",
    "minWidth": 0,
    "whiteSpace": "nowrap",
    PHONE: {
        "justifyContent": "flex-start",
        "overflow": "hidden",  # of the words
        "padding": "6px 9px",
        "width": 38,
        "&& .MuiButton-endIcon": {"display": "none"},
        "&& .MuiButton-startIcon": {"margin": "0 40px 0 0", "fontSize": "18px"},
    },
}
QUIET = {"variant": "text", "size": "small", "margin": (0, 2), "sx": BUTTON}


class Bar:
    """Hold what stands in the bar.

    Args:
        shell: the frame of the pages.
        pages: key -> entry of the menu.
        first: key of the page that is shown first.

    Attributes:
        parts: the components, in order.
    """

    def __init__(self, shell, pages, first: str):
        self.shell = weakref.proxy(shell)  # which has this bar: a circle would outlive its page
        self.menu = pmui.Select(
            label="Page",
            stylesheets=[".MuiInputLabel-root, legend { display: none !important }"],  # for those who listen
            options={entry.label: key for key, entry in pages.items()},
            value=first,
            size="small",
            margin=(0, 12),
            width=220,
            sx=SELECT,
        )
        self.tour = pmui.MenuButton(label="Tour", icon="tour", visible=False, on_click=self._open, **QUIET)
        self.lecture = pmui.Button(label="Lecture (P)", icon="slideshow", on_click=lambda event: self._talk(), **QUIET)
        self.lecture.stylesheets = [f"{PHONE} {{ :host {{ display: none }} }}"]
        self.share = pmui.MenuButton(label="Share", icon="ios_share", on_click=self._share, **QUIET)
        self.classroom = pmui.Button(label="Class", icon="groups", on_click=lambda event: self._teach(), **QUIET)
        self.classroom.stylesheets = [f"{PHONE} {{ :host {{ display: none }} }}"]
        self.parts = [self.menu, self.tour, self.lecture, self.classroom, self.share]

    def show(self, page) -> None:
        """Offer what this page has."""
        tour = getattr(page, "tour", None)
        self.tour.param.update(items=[{"label": name} for name in tour.names] if tour else [], visible=tour is not None)
        self.share.items = [{"label": label} for label in self.shares]

    def name_class(self, code: str) -> None:
        """Show the code of the class and how many follow, or offer to begin one."""
        if (label := f"Class {code}".strip()) != self.classroom.label:
            self.classroom.label = label

    @property
    def shares(self) -> dict[str, Callable[[], None]]:
        """What can be shared of the page on screen, and how."""
        shell = self.shell
        general = {"Copy link": lambda: shell.copy_link(shell.page.link())}
        if shell.key not in NO_STOPS:
            general["Add to a lecture"] = lambda: shell.presentation.add()
        if hasattr(shell.page, "lecture"):  # else there is nothing to look at alone
            general["Copy embed"] = lambda: shell.copy_embed(shell.page.link())
        own = getattr(shell.page, "shares", {})
        gif = {"GIF": lambda: shell.make_gif()} if "Film as WebM" in own else {}
        return {**general, **own, **gif}

    def _open(self, item):
        tour = self.shell.page.tour
        tour.open(tour.names.index(item["label"]))

    def _share(self, item):
        self.shares[item["label"]]()

    def _teach(self):
        self.shell.lecturer.toggle()

    def _talk(self):
        self.shell.presentation.on_key("p")
