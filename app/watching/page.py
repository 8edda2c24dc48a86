"""The page of a loop that is watched: a stage, a slider over what was seen, and the recording."""

from __future__ import annotations

import io
from contextvars import Context
from typing import Any

import numpy as np
import panel as pn
import panel_material_ui as pmui
from tornado.ioloop import IOLoop

from steinlab.server.loop import soon, unscheduled
from steinlab.server.memory import detach_busy
from steinlab.server.patches import stay_local
from steinlab.server.streaming import Streamer
from steinlab.stage.stage import Stage
from steinlab.stage.wire import pack
from steinlab.ui.browser import Browser
from steinlab.ui.theme import TOOLBAR, mui
from steinlab.watching.feed import Feed
from steinlab.watching.picture import SHOWN, background_of, card_of, panel_of
from steinlab.watching.recording import Seen

QUIET = {"variant": "text", "margin": (4, 2), "height": 40}
EVERY = 0.5  # seconds between updates of what is read
REPLAY = 10.0, 1 / 30  # seconds that a replay takes at least, and between two of its frames
RECENT = 3.0  # seconds of the loop over which its speed is a mean


def build(feed: Feed) -> pmui.Page:
    """Build the page of one visitor."""
    pn.extension(notifications=True, reconnect=True)
    stay_local(pn.state.curdoc)
    dark = pn.state.session_args.get("theme") == [b"dark"]
    page = Watched(feed, dark)
    frame = pmui.Page(
        title="Steinlab watch", main=[page.column], sx=TOOLBAR, dark_theme=dark,
        theme_config={"light": mui("light"), "dark": mui("dark")}, theme_toggle=True,
    )  # fmt: skip
    frame.param.watch(lambda event: page.darken(event.new), "dark_theme")
    detach_busy(frame)
    return frame


class Watched:
    """Show a loop: live, paused at a frame, or again from its first frame.

    Attributes:
        column: the component.
    """

    def __init__(self, feed: Feed, dark: bool):
        self.feed, self.begun, self.quiet, self.known = feed, 1, False, False
        self.at: Seen | None = None  # the frame that is shown if it is not the newest one
        self.replaying = self.left = False
        self.axes = (0, 1)
        self.later = soon(pn.state.curdoc)
        marks = {"guides": "guides", "trails": "trails", **({"draws": "exact draws"} if len(feed.ghosts) else {})}
        self.stage = Stage(on_message=self.on_message, marks=marks, show=dict.fromkeys(marks, True), dark=dark)
        self.streamer = Streamer(self.stage.send, self.stage.begin_channel(self.later))
        self.play = pmui.Button(
            label="Pause", icon="pause", variant="contained", width=124, margin=(4, 8), on_click=self.toggle
        )
        self.rewind = pmui.IntSlider(
            label="Rewind", start=0, end=1, value=0, show_value=False, margin=(0, 16), width=None, min_width=160,
            styles={"flex": "1 1 160px"},
        )  # fmt: skip
        self.rewind.param.watch(lambda event: self.quiet or self.go(event.new), "value")
        self.choices = [
            pmui.Select(label=label, options={}, width=190, margin=(4, 8), visible=False)
            for label in ("Across", "Upwards")
        ]
        for choice in self.choices:
            choice.param.watch(self.chose, "value")
        png = pmui.Button(label="Figure as PNG", on_click=lambda event: self.stage.export("png"), **QUIET)
        svg = pmui.Button(label="Figure as SVG", on_click=lambda event: self.stage.export("svg"), **QUIET)
        table = pmui.FileDownload(label="Recording as .npz", callback=self.file, filename="recording.npz", **QUIET)
        self.reading = pmui.Typography("", variant="caption", margin=(4, 10))
        row = pn.FlexBox(self.play, self.rewind, *self.choices, align_items="center", sizing_mode="stretch_width")
        foot = pn.FlexBox(png, svg, table, self.reading, align_items="center", sizing_mode="stretch_width")
        mends = Browser(lambda message: None)  # the scripts that mend Bokeh's faults come with it
        self.column = pmui.Column(mends, self.stage, row, foot, sizing_mode="stretch_width", margin=(4, 12))
        with unscheduled(pn.state.curdoc):
            self.stage.status = "waiting for the first step"
            if "background" in feed.about:
                self.show_scene()
        feed.pages = (*feed.pages, self)
        pn.state.on_session_destroyed(self.leave)
        pn.state.onload(self.begin)

    def begin(self):
        """Show what there is, and from then on what comes."""
        if self.feed.recording.frames:
            self.show(self.feed.recording.frames[-1])
        self.tick()

    def leave(self, context):
        """Forget the page."""
        self.left = True
        self.feed.pages = tuple(page for page in self.feed.pages if page is not self)
        self.streamer.close()

    # ---- frames

    def take(self, frame: Seen):
        """Show a frame that has come, unless an earlier one is shown. Any thread."""
        if self.at is None:
            self.show(frame)

    def show(self, frame: Seen):
        """Send a frame to the browser. Any thread."""
        self.streamer.publish(pack([panel_of(frame, self.axes, self.feed.trace_at(frame))], self.begun))

    def go(self, index: int):
        """Show an earlier frame, and stay there."""
        frames = self.feed.recording.frames
        if frames:
            self.at, self.replaying = frames[min(max(index, 0), len(frames) - 1)], False
            self.show(self.at)
            self.read()

    def toggle(self, event=None):
        """Stay at this frame; or go on with the loop, or with the replay if it has ended."""
        frames = self.feed.recording.frames
        if not frames:
            return
        if self.replaying:
            self.replaying = False
        elif self.feed.ended:
            self.replaying = True
            if self.at in (None, frames[-1]):
                self.at = frames[0]
            self.replay(frames.index(self.at))
        elif self.at is None:
            self.at = frames[-1]
        else:
            self.at = None
            self.show(frames[-1])
        self.read()

    def replay(self, place: int):
        """Show the recording from a frame to its end."""
        frames = self.feed.recording.frames
        if self.left or not self.replaying:
            return
        self.at = frames[min(place, len(frames) - 1)]
        self.show(self.at)
        self.replaying = place < len(frames) - 1
        self.read()
        took, every = REPLAY
        onward = place + max(1, round(len(frames) * every / took))
        self.in_a_while(every, lambda: self.replay(min(onward, len(frames) - 1)))

    def in_a_while(self, seconds: float, call):
        """Run a call on the event loop after so many seconds."""
        Context().run(IOLoop.current().call_later, seconds, self.later, call)  # this context refers to the page

    def tick(self):
        """Update what is read, again and again."""
        if not self.left:
            self.read()
            self.in_a_while(EVERY, self.tick)

    def read(self):
        """Update what is read: step, speed, and what the buttons do. On the event loop."""
        feed, frames = self.feed, self.feed.recording.frames
        if not frames:
            if feed.ended:
                self.stage.param.update(status="", alarm=feed.said or "The loop has ended, and has shown nothing.")
            return
        if not self.known:
            self.known = True
            self.show_scene()
            if frames[0].particles.shape[1] > 2:
                self.offer()
        shown, last = self.at or frames[-1], frames[-1]
        place = next((i for i, frame in enumerate(frames) if frame.step >= shown.step), len(frames) - 1)
        moving = self.replaying or self.at is None and not feed.ended
        label = "Pause" if moving else "Replay" if feed.ended else "Go on"
        self.quiet = True
        self.rewind.param.update(end=max(1, len(frames) - 1), value=place, value_label=f"step {shown.step:,}")
        self.quiet = False
        self.play.param.update(label=label, icon="pause" if moving else "replay" if feed.ended else "play_arrow")
        lost = "" if np.isfinite(shown.particles).all() else "Some particles are not finite."
        self.stage.param.update(status="", alarm=feed.said or lost)
        since = next(frame for frame in frames if frame.seconds >= last.seconds - RECENT)
        took = last.seconds - since.seconds
        rate = f"{(last.step - since.step) / took:,.0f} steps/s of the loop · " if took > 0 else ""
        few = f" · {SHOWN:,} of {len(shown.particles):,} particles are drawn" * (len(shown.particles) > SHOWN)
        now = (
            f"The loop has ended at step {last.step:,}"
            if feed.ended
            else f"{rate}{self.streamer.acked_per_second} frames/s"
        )
        self.reading.object = now + few

    # ---- what stands still

    def offer(self):
        """Offer the coordinates, once their number is known."""
        names = {name: i for i, name in enumerate(self.feed.recording.coordinates)}
        self.quiet = True
        for choice, axis in zip(self.choices, self.axes):
            choice.param.update(options=names, value=axis, visible=True)
        self.quiet = False

    def chose(self, event):
        """Draw two other coordinates."""
        axes = tuple(choice.value for choice in self.choices)
        if self.quiet or axes == self.axes or None in axes:
            return
        self.axes, self.begun = axes, self.begun + 1
        self.stage.starting = self.begun
        self.show_scene()
        self.show(self.at or self.feed.recording.frames[-1])

    def show_scene(self):
        """Draw what stands still: the density, or the place of the particles if none is known."""
        frames = self.feed.recording.frames
        guides = bool(frames) and frames[0].scales is not None
        card, background = card_of(self.feed.about, guides), background_of(self.feed, self.axes)
        self.stage.scene = {"cards": [card], "backgrounds": [background], "note": ""}

    def darken(self, dark: bool):
        """Use the dark theme, or the light one."""
        self.stage.dark = dark

    # ---- from the browser

    def on_message(self, message: dict[str, Any]):
        """Handle a message of the stage."""
        if "ack" in message:
            self.streamer.ack(message["ack"])
        elif "ready" in message:
            self.streamer.ready()
        elif message.get("key") == "space":
            self.toggle()
        elif message.get("key") in ("left", "right"):
            self.go(self.rewind.value + (1 if message["key"] == "right" else -1))

    def file(self) -> io.BytesIO:
        """Return the recording as an .npz."""
        made = io.BytesIO()
        self.feed.recording.save(made)
        made.seek(0)
        return made
