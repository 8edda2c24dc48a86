"""The rows of a training page: a session trains each of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from stein_core import device_name
from steinlab.server.loop import Gate
from steinlab.server.streaming import Mailbox, Streamer
from steinlab.stage.training import Snapshot, Training


class Trainings:
    """Train one setup a row.

    Args:
        kind: class of the sessions.
        send: takes the frames.
        post: (call), runs it on the event loop.
        loaded: the same, once a browser has the page.
        on_news: (row, news of its session), on the event loop.

    Attributes:
        sessions: one a row.
    """

    def __init__(
        self,
        kind: type[Training],
        send: Callable,
        post: Callable,
        loaded: Callable,
        on_news: Callable[[int, dict], None],
    ):
        self.kind, self.send, self.post, self.loaded, self.on_news = kind, send, post, loaded, on_news
        self.sessions: list[Training] = []
        self._streamers: list[Streamer] = []
        self._playing: dict[int, bool] = {}
        self._status: dict[int, str] = {}
        self._rates: dict[int, float] = {}
        self._pace, self._shown = None, False
        self._gate = Gate(post)

    def train(self, setups: Sequence) -> None:
        """Train these, each in its row. What is the same as before goes on."""
        while len(self.sessions) > len(setups):
            self.sessions.pop().close()
            self._streamers.pop()
            for facts in (self._playing, self._status, self._rates):
                facts.pop(len(self.sessions), None)
        for row, setup in enumerate(setups):
            if row < len(self.sessions):
                self.sessions[row].apply(setup)
            else:
                self._add(row, setup)

    def again(self) -> None:
        """Send the newest frame of each row again."""
        for streamer in self._streamers:
            streamer.ready()

    def _add(self, row: int, setup):
        streamer = Streamer(self.send, self._gate)
        self._streamers.append(streamer)
        on_news = Mailbox(self.loaded, lambda news: streamer in self._streamers and self._take(row, news))
        session = self.kind(setup, streamer, on_news, row, self.sessions[0] if row else None)
        self.sessions.append(session)
        self._playing[row] = True
        if self._pace:
            session.speed(self._pace)
        if self._shown:
            session.wake()

    def _take(self, row: int, news: dict):
        if "playing" in news:
            self._playing[row] = news["playing"]
        if "status" in news:
            self._status[row] = news["status"]
        if "steps_per_second" in news:
            self._rates[row] = news["steps_per_second"]
        self.on_news(row, news)

    def show(self, on: bool) -> None:
        """Work while the page is on screen, and rest while it is not."""
        self._shown = on
        for session in self.sessions:
            session.wake() if on else session.sleep()

    def ready(self) -> None:
        """The browser takes frames."""
        self._gate.open()
        for streamer in self._streamers:
            streamer.ready()

    def ack(self, row: int, number) -> None:
        """The browser has drawn a frame of this row."""
        if row < len(self._streamers):
            self._streamers[row].ack(number)

    @property
    def playing(self) -> bool:
        """Whether any network trains."""
        return any(self._playing.values())

    def play(self, on: bool) -> None:
        """Train on, or pause."""
        for session in self.sessions:
            session.play(on)

    def step(self) -> None:
        """Take one step in each row."""
        for session in self.sessions:
            session.step()

    def reset(self) -> None:
        """Train from scratch."""
        for session in self.sessions:
            session.reset()
            session.play(True)

    def speed(self, steps: int) -> None:
        """Set the most steps for each frame."""
        self._pace = steps
        for session in self.sessions:
            session.speed(steps)

    @property
    def snapshots(self) -> list[Snapshot | None]:
        """What is on screen, by the row."""
        return [session.snapshot for session in self.sessions]

    @property
    def steps(self) -> tuple[int, ...]:
        """The step of each row."""
        return tuple(snapshot.step if snapshot else 0 for snapshot in self.snapshots)

    @property
    def reading(self) -> str:
        """How far the first network is, or what all are waiting for."""
        rate = f" · {self._rates.get(0, 0.0):,.0f} steps/s" if self._playing.get(0) else ""
        return " · ".join(filter(None, self._status.values())) or f"step {self.steps[0]:,}{rate} · {device_name()}"

    def close(self) -> None:
        """End every session."""
        for session in self.sessions:
            session.close()
