"""The frame around the pages: title, navigation, theme and address bar; and a message if the start fails."""

import html
import logging
from contextvars import Context
from pathlib import Path
from urllib.parse import parse_qsl

import panel as pn
import panel_material_ui as pmui
from tornado.ioloop import IOLoop

from stein_core.base.errors import unknown
from steinlab.bar import Bar
from steinlab.classroom.lecturer import Lecturer
from steinlab.contents import PAGES
from steinlab.lesson.playlist import place_of, read_playlist
from steinlab.presentation import Presentation
from steinlab.server.limits import LIMITS
from steinlab.server.loop import soon, unscheduled
from steinlab.server.memory import detach_busy, forget_page, keep_alive
from steinlab.server.patches import stay_local
from steinlab.server.streaming import FRAME_BUDGET
from steinlab.server.visitors import VISITORS
from steinlab.ui.browser import Browser
from steinlab.ui.gif import Gifs
from steinlab.ui.theme import TOKENS, TOOLBAR, mui, preferred

log = logging.getLogger(__name__)

FIRST = "index"  # of a bare address
ANSWERED = 0.01  # seconds until the page is built: by then Bokeh has answered with the frame
UNNAMED = "particles"  # of a link that names no page: its fields are a run's
FRAME = Path(__file__).with_name("frame.html")


def serve() -> None:
    """Make this visitor's page servable."""
    pn.extension(notifications=True, reconnect=True)
    try:
        page = build()
    except Exception as error:
        page = could_not_start(error)
    page.servable(title="Steinlab")


def could_not_start(error: Exception) -> pmui.Alert:
    """Log the error that is being handled, and return what the visitor reads."""
    log.exception("start")
    text = html.escape(f"{type(error).__name__}: {error}. The server's log has the details.")
    return pmui.Alert(pn.pane.HTML(text), severity="error", title="Could not start")


def build() -> pmui.Page | pmui.Alert:
    """Build the pages of one visitor, or a message if the server is full."""
    stay_local(pn.state.curdoc)
    pn.state.curdoc.template_variables.update(TOKENS)  # of frame.html
    if not VISITORS.admit(pn.state.curdoc):
        text = f"This server takes {LIMITS.sessions} visitors at a time. Reload the page in a few minutes."
        return pmui.Alert(text, severity="info", title="Full")
    query = {name: values[0].decode(errors="replace") for name, values in pn.state.session_args.items()}
    shell = Shell(query)
    forget_page(pn.state.curdoc, shell)
    Context().run(IOLoop.current().call_later, ANSWERED, shell.later, shell.begin)  # this context refers to the page
    return shell.frame


class Shell:
    """Hold one visitor's pages. Each is built on its first visit and then kept; one is shown, the rest are hidden.

    The frame is there at once. `begin` builds the first page, while the browser loads the frame's scripts.
    """

    def __init__(self, query: dict[str, str]):
        self.address, self.later = "", soon(pn.state.curdoc)
        self.pages = {}
        self.columns = {}
        self.known = dict(PAGES)  # its own: what it holds is cleared when it ends
        agent = pn.state.headers.get("User-Agent", "")
        self.height_of_window = 720  # in pixels; the browser tells it later
        self.short = query.get("ui") == "min"  # part of another page
        self.usual = "light" if self.short else preferred(pn.state.cookies)
        dark = query.get("theme", self.usual) == "dark"
        pn.config.theme = "dark" if dark else "default"  # of each component from here on
        self.narrow = "Mobi" in agent  # on a narrow screen the sidebar would cover the page; the browser tells it later
        self.browser, self.gifs = Browser(self.on_message), Gifs()
        pn.state.on_session_destroyed(lambda context, gifs=self.gifs: gifs.close())
        self.main, self.sidebar = (
            pmui.Column(self.browser, self.gifs.dialog, sizing_mode="stretch_width"),
            pmui.Column(sizing_mode="stretch_width"),
        )
        wanted = query.get("page")
        self.unknown = [] if wanted in (None, *PAGES) else [str(unknown("page", wanted, PAGES))]
        self.presentation = Presentation(self)
        self.key, self.query = self._first(query)
        self.bar = Bar(self, self.known, self.key)
        self.menu, self.lecturer = self.bar.menu, Lecturer(self)
        self.frame = pmui.Page(
            title="Steinlab",
            template=FRAME,
            header=self.bar.parts,
            main=[self.main],
            sidebar=[self.sidebar],
            sidebar_width=304,
            sidebar_resizable=False,
            theme_config={"light": mui("light"), "dark": mui("dark")},
            theme_toggle=True,
            sx=TOOLBAR,
            dark_theme=dark,
        )
        detach_busy(self.frame)

    def _first(self, query: dict[str, str]) -> tuple[str, dict[str, str]]:
        """Return the page that a link shows first and the fields of its link; a lecture begins with it."""
        if "play" not in query or query.get("page"):
            return page_of(query), query
        made, _, problems = read_playlist(fields(query), self.known)
        self.unknown += problems
        if not made.play:
            return FIRST, {}
        self.presentation.playlist = made
        place = place_of(made.play[made.at - 1], self.known)
        return place.page, place.query

    @property
    def page(self):
        """The page on screen."""
        return self.pages[self.key]

    def begin(self):
        """Build the first page, or say why that fails."""
        with unscheduled(pn.state.curdoc):
            try:
                self.make(self.key, self.query)
                self.frame.param.update(**self.drawer(self.key))
            except Exception as error:
                self.menu.visible = self.frame.sidebar_open = False
                self.main.append(could_not_start(error))
                return
        self.menu.param.watch(lambda event: self.turn_to(event.new), "value")
        pn.state.onload(self.start)

    def start(self):
        """Show the first page. Panel drops changes until the document is loaded, so not before."""
        keep_alive()
        self.page.show()
        self.bar.show(self.page)
        if self.presentation.playlist:
            self.presentation.talk()
        if self.unknown:
            pn.state.notifications.warning(" ".join(self.unknown))  # it shows text, not markup
        self.wait()

    def wait(self):
        """Call `tick` in half a second, or later if many pages play, unless the page has ended.

        A periodic callback of Bokeh's holds a reference to itself, and so the page after its end. Panel's also sets
        `pn.state.busy` of the whole server each time.
        """
        pause = 0.5 * FRAME_BUDGET.crowding()
        Context().run(IOLoop.current().call_later, pause, self.later, self.tick)  # this context refers to the page

    def tick(self):
        """Refresh what changes all the time."""
        try:
            self.refresh()
        finally:
            self.wait()

    def make(self, key: str, query: dict[str, str]):
        """Build a page and add it to the frame, hidden or not."""
        build = PAGES[key].build
        page = build(self, fields(query))
        self.columns[key] = tuple(
            pmui.Column(*objects, sizing_mode="stretch_width", margin=margin)
            for objects, margin in ((page.sidebar, (8, 0)), (page.main, 0))
        )
        self.pages[key] = page
        self.sidebar.append(self.columns[key][0])
        self.main.append(self.columns[key][1])

    def drawer(self, key: str) -> dict:
        """Return the frame's settings of the sidebar for a page; without content it is closed and has no button."""
        filled = bool(self.pages[key].sidebar)
        # Its place stays, so that what stands beside it does not move from page to page.
        hidden = {} if filled else {'.MuiToolbar-root button[aria-label$="drawer"]': {"visibility": "hidden"}}
        return {"sidebar_open": filled and not self.narrow, "sx": {**TOOLBAR, **hidden}}

    def lecture(self, on: bool):
        """Show the page without bar and sidebar, or with them."""
        if on:
            self.strip()
        else:
            self.frame.param.update(**self.drawer(self.key))
        self.browser.lecture = on

    def strip(self):
        """Take bar and sidebar away."""
        sx = {**self.drawer(self.key)["sx"], ".MuiAppBar-root, .MuiToolbar-root": {"display": "none"}}
        self.frame.param.update(sidebar_open=False, sx=sx)

    def go(self, link: str):
        """Follow a link within the app, "?page=key&a=1", as a new entry of the browser's history."""
        self.follow(dict(parse_qsl(link.removeprefix("?"))), push=True)

    def follow(self, query: dict[str, str], push: bool):
        """Show what a link says: a page, or a lecture. push: add an entry to the browser's history."""
        if "play" not in query or query.get("page"):
            return self.turn_to(page_of(query), query, push=push)
        made, _, problems = read_playlist(fields(query), self.known)
        if problems:
            pn.state.notifications.warning(" ".join(problems))
        if made.play:
            self.presentation.play(made, push=push)

    def diagnose(self, runs: list[tuple]):
        """Show page "Your posterior" with these runs of a stage, see `steinlab.stage.hand_over.runs_of`."""
        self.turn_to("posterior")
        self.pages["posterior"].check(runs)

    def turn_to(self, key: str, query: dict[str, str] | None = None, push: bool = True):
        """Show another page, or another link of this one.

        Args:
            key: of the page.
            query: fields of the link, None to keep what the page shows.
            push: add a new entry to the browser's history.
        """
        if key == self.key and not query:
            return
        if push:
            self.refresh()  # the entry that is left says what was shown last
        if key not in self.pages:
            self.make(key, query or {})
        elif (push or key == self.key) and hasattr(self.pages[key], "open") and fields(query or {}):
            self.pages[key].open(fields(query))
        if key != self.key:
            self.pages[self.key].hide()
            if bool(self.pages[key].sidebar) != bool(self.pages[self.key].sidebar):
                self.frame.param.update(**self.drawer(key))
            self.key = self.menu.value = key
            for other, columns in self.columns.items():
                for column in columns:
                    column.visible = other == key
            self.page.show()
            self.bar.show(self.page)
        if push:
            self.address = self.full(self.pages[key].link())
            self.browser.show_link(self.address, push=True)

    def on_message(self, message: dict):
        """Handle a message of the browser."""
        if "height" in message and message["height"] != self.height_of_window:
            self.height_of_window = min(max(message["height"], 320), 4000)
            if self.pages and hasattr(self.page, "resized"):
                pn.state.onload(self.page.resized)  # a change before that is lost
        if "key" in message:
            pn.state.onload(lambda: self.presentation.on_key(message["key"]))
        if message.keys() <= {"height", "key"}:
            return
        if "theme" in message:
            self.frame.dark_theme = message["theme"] == "dark"
            return
        if "copied" in message:
            if message["copied"]:
                pn.state.notifications.success("Copied.", duration=2000)
            else:
                pn.state.notifications.error("The browser does not allow this page to copy.", duration=8000)
            return
        if "base" in message:
            self.lecturer.base = message["base"]
            pn.state.onload(lambda: self.lecturer.resume(message["class"]))
        if message.get("narrow"):
            self.narrow = True
            pn.state.onload(lambda: self.frame.param.update(sidebar_open=False))
        self.address = ""  # one sent before the browser was ready is lost, and Back has changed it
        if "back" in message:
            self.follow(dict(parse_qsl(message["back"].removeprefix("?"))), push=False)

    def full(self, link: str, short: bool | None = None) -> str:
        """Return the query of the current page's link, with the page's key, and with the theme unless it is that of the
        system.

        Args:
            link: of the page.
            short: as part of another page, which is light unless its link says otherwise. None: as it is now.
        """
        short = self.short if short is None else short
        if self.presentation.playlist and self.browser.lecture:
            link, key = self.presentation.playlist.to_query(), []
        else:
            key = [] if self.key in (FIRST, UNNAMED) else [f"page={self.key}"]
        shown, usual = "dark" if self.frame.dark_theme else "light", "light" if short else self.usual
        look = [*[f"theme={shown}"] * (shown != usual), *["ui=min"] * short]
        return "?" + "&".join([*key, *[link] * bool(link), *look])

    def copy_link(self, link: str):
        """Copy the address of the current page with this link to the user's clipboard."""
        self.browser.copy_link(self.full(link))

    def make_gif(self):
        """Begin a GIF of what the page shows."""
        look = ["theme=dark"] * self.frame.dark_theme
        self.gifs.ask("&".join(filter(None, [f"page={self.key}", self.page.link(), *look])))

    def copy_embed(self, link: str):
        """Copy an iframe that shows the current page, with this link, within another one."""
        self.browser.copy_embed(self.full(link, short=True))

    def refresh(self):
        """Update the page's readings and the address bar."""
        page = self.pages[self.key]
        page.refresh()
        self.gifs.refresh()
        self.lecturer.tick()
        address = self.full(page.link())
        if address != self.address:
            self.address = address
            self.browser.show_link(address)


def page_of(query: dict[str, str]) -> str:
    """Return the key of the page that a link shows."""
    if query.get("page") in PAGES:
        return query["page"]
    return UNNAMED if fields(query) else FIRST


def fields(query: dict[str, str]) -> dict[str, str]:
    """Return the fields of a link that are for its page."""
    return {name: value for name, value in query.items() if name not in ("page", "theme", "ui")}
