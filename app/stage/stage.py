"""The stage: a canvas that draws particles, forces and read-outs at frame rate."""

from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import param
from panel.custom import JSComponent

from steinlab.server.channel import Channelled
from steinlab.server.loop import Unbusy
from steinlab.server.messages import CheckedMessages, flag, number, one_of, point, whole
from steinlab.ui.theme import script, variables

HERE = Path(__file__).parent
SCRIPTS = (
    "svg.js",
    "draw.js",
    "lens.js",
    "background.js",
    "mixture.js",
    "crowd.js",
    "cards.js",
    "frames.js",
    "film.js",
    "recorder.js",
    "drag.js",
    "input.js",
    "line.js",
    "stage.js",
)
LIGHT, DARK = f".stage {{ {variables('light')} }}", f".stage.dark {{ {variables('dark')} }}"
OFFER = " ".join([LIGHT, DARK, (HERE / "offer.css").read_text(encoding="utf-8")])  # of what can be saved
CSS = " ".join([OFFER, (HERE / "stage.css").read_text(encoding="utf-8")])


def plain(code: str) -> str:
    """Return the script of a component as one for a page without Panel."""
    return code.replace("export function render", "function render")


def plain_script(*more: str) -> str:
    """Return the code of a stage for a page without Panel, with more scripts of this folder after it."""
    return plain(script(*map(HERE.joinpath, (*SCRIPTS, "model.js", *more))))


def plain_tokens() -> str:
    """Return the tokens of both themes for a page without Panel; `data-theme="dark"` makes the page dark."""
    return f":root, .stage {{ {variables('light')} }} [data-theme=dark], .stage.dark {{ {variables('dark')} }}"


def plain_style() -> str:
    """Return the style sheet of a stage for a page without Panel."""
    return "\n".join(
        [plain_tokens(), *((HERE / name).read_text(encoding="utf-8") for name in ("stage.css", "offer.css"))]
    )


class ReadOuts(JSComponent):
    """Hold the read-outs of a stage, so that something can stand between them and the panels."""

    key = param.String(doc="The `slot` of the stage.")
    dark = param.Boolean(default=False)

    _esm = HERE / "slot.js"
    _stylesheets: ClassVar = [CSS]


class Stage(Unbusy, Channelled, CheckedMessages, JSComponent):
    """Draw up to three cards side by side, each with its read-outs.

    Cards over one background share the scale of their arrows.

    Args:
        on_message: gets every message of the browser, on the event loop: {"ready": True}, {"ack": seq},
            {"add": [x, y]}, {"remove": index}, {"move": index, "to": [x, y]}, {"grab": True} when a drag begins or
            {"grab": False} when it is given up, or {"key": "space" | "left" | "right" | "up" | "down" | "r"}.
        scene: what does not move, {"cards": [...], "backgrounds": [...]}; of page Particles also "note", what a model's
            owner should know about its start.

    A card is a dict of
        title: text.
        background: index of its first background.
        accent: [its colour on a light page, on a dark one].
        edit: whether a click adds a particle, and one can be dragged.
        kind: "point" or "guide", how its particles are drawn.
        particle: what one is called.
        note: text in its middle, or "".
        metrics: [{"name", "label", "log", "help", "big", "truth"}] of its read-outs: whether it is a large one, and the
            exact value that a gauge marks, or None.

    A background is a dict, with lengths in data units, of
        extent: [x0, x1, y0, y1]; it widens if particles leave it.
        equal: whether both axes share a unit.
        labels: [x, y].
        contours: polylines, each flat: x, y, x, y ...
        image: {"width", "height", "data": base64 of uint8 shades, bottom row first} or None.
        curve: a flat polyline, or None; area: the area below it.
        draws: exact draws of the target, flat: x, y, x, y ..., or None.
        usual: length of the forces at the start of a run whose start is not shown, if it is known.
    """

    scene = param.Dict(default={})
    marks = param.Dict(default={}, doc="Label of everything that the legend can show and hide, by its name.")
    show = param.Dict(default={"attract": True, "repulse": True, "trails": False, "guides": True})
    lit = param.Selector(default="", objects=["", "attract", "repulse"], doc="The force whose arrows come forward.")
    lecture = param.Boolean(default=False, doc="Text, lines and dots of twice the size, and no axes.")
    slot = param.String(doc='Key of the `ReadOuts` that hold the read-outs; "": they stand below the panels.')
    starting = param.Integer(doc="Number of the newest run, as in `pack`; earlier runs are cleared.")
    status = param.String(doc="Present activity, as a small badge.")
    alarm = param.String(doc="What went wrong, as a banner.")
    embedded = param.Boolean(
        default=False, doc="Part of a longer page: it ignores the keyboard and pauses while it is out of sight."
    )
    dark = param.Boolean(default=False)
    channel = param.String(doc='Token of a websocket of its own, see `steinlab.server.channel`; "": it has none.')

    schemas = (
        {"ack": number},
        {"ready": flag},
        {"add": point},
        {"remove": whole},
        {"move": whole, "to": point},
        {"grab": flag},
        {"key": one_of("space", "left", "right", "up", "down", "r")},
    )
    _esm = script(*map(HERE.joinpath, SCRIPTS))
    _stylesheets: ClassVar = [CSS]

    def __init__(self, on_message: Callable[[dict], None] | None = None, **params):
        super().__init__(**{"sizing_mode": "stretch_width", **params})
        self.on_message = on_message

    def fit(self) -> None:
        """Make the arrows that are on screen as long as those at the start of a run."""
        self._send_msg({"fit": True})

    def export(self, kind: str, page: str = "") -> None:
        """Make the browser download what is on screen.

        Args:
            kind: "png" or "svg"; or, of the whole run, "html", a page that plays it again, or "webm", a film.
            page: for "html": what `steinlab.stage.replay.replay_page` returns.
        """
        self._send_msg({"export": kind, "page": page})

    def handle_message(self, data) -> None:
        if self.on_message:
            self.on_message(data)
