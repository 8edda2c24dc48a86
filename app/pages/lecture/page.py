"""Page "Lecture": put stops of several pages into one lecture, prepare it, and start it."""

from __future__ import annotations

import html
import json
from pathlib import Path

import panel as pn
import panel_material_ui as pmui
import param
from panel.custom import JSComponent

from steinlab.lesson.playlist import LONGEST, MOST, Playlist, offered, place_of, read_playlist
from steinlab.pages.lecture.preparing import Preparing
from steinlab.server.folders import ASSETS
from steinlab.server.loop import soon
from steinlab.ui import link
from steinlab.ui.job_bar import BUTTON, MIDDLE, TEXT
from steinlab.ui.text import Text

SHIPPED = ASSETS / "lecture.json"  # a lecture of 45 minutes: [[name, note], ...]
SPEAKER = link.switch("speaker", "speaker in the link", ("off", "on"), attribute="on")
WIDTH = {"max-width": "980px", "margin": "0 auto", "width": "100%"}
INTRO = (
    "<h1>Prepare a lecture</h1><p>One link holds it all: stops of the tours and figures of the lessons, in your order. "
    "In the lecture the arrows, Page Up and Page Down go back and forth. A stop with a question waits for the next "
    "arrow before it shows the answer. Your notes stay in a second window.</p>"
)
CSS = """
.prose { max-width: none; }
.prose p { margin: 0 0 2px; }
.stop { display: flex; gap: 10px; align-items: baseline; }
.stop b { min-width: 1.6em; text-align: right; font-variant-numeric: tabular-nums; }
.stop span { flex: 1; }
.stop a { padding: 6px; text-decoration: none; }
"""
STAGE = """
.speaker { max-width: 44em; margin: 24px auto; padding: 0 16px; font-size: 22px; line-height: 1.5;
  color: var(--mui-palette-text-primary); }
.speaker h1 { font-size: 32px; line-height: 1.2; margin: 0 0 .5em; }
.speaker .where, .speaker .next { color: var(--mui-palette-text-secondary); }
.speaker .note { white-space: pre-line; min-height: 6em; }
.speaker .row { display: flex; align-items: center; gap: 16px; }
.speaker button { font: inherit; padding: 8px 24px; border: 1px solid var(--mui-palette-edge-main); border-radius: 8px;
  background: none; color: inherit; cursor: pointer; }
.speaker time { margin-left: auto; font-size: 32px; font-variant-numeric: tabular-nums; }
"""


class Speaker(JSComponent):
    """Show the speaker's notes, in a window of their own."""

    stops = param.List(default=[], doc='Dicts of "name", "title" and "note".')

    _esm = Path(__file__).with_name("speaker.js")
    _stylesheets = [STAGE]


def shipped() -> Playlist:
    """Return the lecture that comes with the app."""
    stops = json.loads(SHIPPED.read_text(encoding="utf-8"))
    return Playlist(tuple(name for name, _ in stops), tuple(note for _, note in stops))


class LecturePage:
    """Page "Lecture"; see `steinlab.contents` for the contract of a page."""

    def __init__(self, shell, query: dict[str, str]):
        self.shell, self.later, self.quiet = shell, soon(pn.state.curdoc), False
        self.sidebar = []
        self.preparing: Preparing | None = None
        speaks, query = link.split((SPEAKER,), query)
        self.playlist, _, self.problems = read_playlist(query, shell.known)
        if not self.playlist.play:
            self.playlist = shipped()
        self.titles = {name: title for title, name in offered(shell.known).items()}
        self.speaker = Speaker(sizing_mode="stretch_width") if speaks.get("speaker") == "on" else None
        self.stops = pmui.Column(sizing_mode="stretch_width", margin=0)
        self.choose = pmui.AutocompleteInput(
            label="Add a stop: type a page, a lesson or a word",
            options={title: name for name, title in self.titles.items()},
            case_sensitive=False,
            search_strategy="includes",
            min_characters=0,
            size="small",
            width=560,
            margin=(8, 8),
        )
        self.choose.param.watch(self.on_chosen, "value")
        self.start = pmui.Button(
            label="Start the lecture",
            icon="slideshow",
            variant="contained",
            on_click=lambda event: shell.presentation.play(self.playlist),
            **BUTTON,
        )
        self.prepare = pmui.Button(
            label="Prepare this lecture", icon="bolt", on_click=lambda event: self.on_prepare(), **TEXT
        )
        self.notes = Text(html="", margin=(8, 8), **MIDDLE)
        self.said = pmui.Typography("", variant="body2", margin=(4, 8), **MIDDLE)
        row = pmui.FlexBox(self.start, self.prepare, self.notes, self.said, align_items="center")
        body = pn.Column(
            Text(html=INTRO, margin=(8, 8)), row, self.stops, self.choose, styles=WIDTH, sizing_mode="stretch_width"
        )
        self.main = [self.speaker or body]
        self.draw()
        pn.state.on_session_destroyed(lambda context: self.leave())

    # ---- what the shell asks

    def show(self):
        if self.problems:
            pn.state.notifications.warning(" ".join(self.problems))  # it shows text, not markup
            self.problems = []

    def hide(self):
        """Do nothing: what is being prepared is for the pages that come."""

    def refresh(self):
        """Say how far the preparation is."""
        self.tell()

    def link(self) -> str:
        return self.playlist.to_query(notes=True, **({"speaker": "on"} if self.speaker else {}))

    def open(self, query: dict[str, str]):
        """Show the lecture of a link."""
        made, _, self.problems = read_playlist(query, self.shell.known)
        self.take(made if made.play else shipped())
        self.show()

    # ---- from the user

    def take(self, playlist: Playlist):
        """Show another lecture."""
        if self.preparing and playlist.play != self.playlist.play:
            self.preparing.cancel()
            self.preparing = None
        self.playlist = playlist
        self.draw()
        self.tell()

    def add(self, name: str):
        """Put one more stop at the end."""
        if len(self.playlist.play) >= MOST:
            return pn.state.notifications.warning(f"A lecture has at most {MOST} stops.")
        self.take(self.playlist.with_stop(name))

    def on_chosen(self, event):
        """Add the chosen stop."""
        if event.new:
            self.choose.value = ""
            self.add(event.new)

    def on_note(self, index: int, text: str):
        """Keep the note of a stop."""
        self.playlist = self.playlist.noted(index, text)
        self.show_links()

    def on_prepare(self):
        """Compile what all stops need, or stop that."""
        if self.preparing and self.preparing.state == "running":
            self.preparing.cancel()
        else:
            self.preparing = Preparing(self.playlist.play, self.shell.known, lambda: self.later(self.tell))
        self.tell()

    def leave(self):
        """End the preparation: the tab is closed."""
        if self.preparing:
            self.preparing.cancel()

    # ---- drawing

    def tell(self):
        """Say how far the preparation is."""
        job = self.preparing
        running = bool(job) and job.state == "running"
        label, icon = ("Cancel", "stop") if running else ("Prepare this lecture", "bolt")
        if self.prepare.label != label:
            self.prepare.param.update(label=label, icon=icon)
        total = len(self.playlist.play)
        if running:
            text = f"{job.done} of {total} stops are ready, {job.seconds:.0f} s so far."
        elif job and job.state == "done":
            text = " ".join([f"{job.done - len(job.failed)} of {total} stops are ready.", *job.failed])
        else:
            text = ""
        if self.said.object != html.escape(text):
            self.said.object = html.escape(text)

    def draw(self):
        """Draw the stops, each with its note."""
        places = [place_of(name, self.shell.known) for name in self.playlist.play]
        rows, heads = [], []
        for index, (place, note) in enumerate(zip(places, self.playlist.notes)):
            field = pmui.TextInput(
                label="Note for the speaker",
                value=note,
                placeholder=place.text or place.caption,
                max_length=LONGEST,
                size="small",
                sizing_mode="stretch_width",
                margin=(2, 8, 10, 40),
            )
            field.param.watch(lambda event, index=index: self.on_note(index, event.new), "value")
            head = Text(html="", go=self.shell.go, stylesheets=[CSS], margin=(0, 8))
            heads.append((head, place))
            rows.append(pmui.Column(head, field, sizing_mode="stretch_width", margin=0))
        self.stops[:], self.heads = rows, heads
        self.show_links()
        if self.speaker:
            self.speaker.stops = [
                {"name": name, "title": place.title, "note": note or place.text or place.caption}
                for name, place, note in zip(self.playlist.play, places, self.playlist.notes)
            ]

    def line(self, index: int, place) -> str:
        """Return the first line of a stop as HTML: its number, its title, and links that move or remove it."""

        def to(made: Playlist, words: str, sign: str) -> str:
            target = html.escape(f"?page=lecture&{made.to_query(notes=True)}")
            return f'<a href="{target}" aria-label="{words}" title="{words}">{sign}</a>'

        lift = to(self.playlist.lifted(index), f"Move stop {index + 1} up", "↑") if index else ""
        drop = to(self.playlist.without(index), f"Remove stop {index + 1}", "✕") if len(self.playlist.play) > 1 else ""
        asks = " <small>with a question</small>" * bool(place.ask)
        return f'<p class="stop"><b>{index + 1}</b><span>{html.escape(place.title)}{asks}</span>{lift}{drop}</p>'

    def show_links(self):
        """Update the links, which hold the notes: those of the stops, and that to the window with the notes."""
        for index, (head, place) in enumerate(self.heads):
            head.html = self.line(index, place)
        target = html.escape(f"?page=lecture&{self.playlist.to_query(notes=True, speaker='on')}")
        made = f'<p><a href="{target}" target="_blank">Speaker\'s notes in a second window</a></p>'
        if self.notes.html != made:
            self.notes.html = made
