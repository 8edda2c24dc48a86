"""One network's training on the 1-D wave: a worker thread that owns the state of every method, on one clock."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from typing import Callable

from app.pages.wave.fit import Fit, moved
from app.pages.wave.measures import Seen, seen
from app.pages.wave.setup import STEPS, WaveSetup, effort, label_of
from app.pages.wave.stage import pack
from app.pages.wave.trained import is_shipped, shipped_state
from app.server.background import Threads
from app.server.errors import note
from app.server.streaming import Streamer
from app.stage.worker import Worker
from stein_core import Spec, Stepper, compile

log = logging.getLogger(__name__)

SLICE = 0.05  # seconds of training between two looks at the commands
INTERVAL = 0.12  # seconds between two pictures
LONGEST_REST = 0.2  # seconds that one which lets another go first rests at once
MORE = 3000  # steps that a change of the data is answered with, once training had ended

COMPILERS = Threads(2, "compile-wave")


@dataclass(frozen=True)
class Picture:
    """What is on screen: the step, what each method says and the setup it was computed under."""

    step: int
    setup: WaveSetup
    methods: dict[str, Seen]


class WaveSession(Worker):
    """A WaveSetup in training. The run that ships begins at its last step.

    streamer: gets every `picture`, packed. tell: called from the worker with a dict of news: playing, status, alarm.
    row: of the stage. first: another session, which goes first: while that one trains, this one rests half of the time.
    wake() starts it, sleep() rests it, close() ends the thread.
    """

    def __init__(
        self,
        setup: WaveSetup,
        streamer: Streamer,
        tell: Callable[[dict], None],
        row: int = 0,
        first: WaveSession | None = None,
    ):
        super().__init__(streamer, tell)
        self._setup, self._row, self._first = setup, row, first
        self._playing = self._dirty = True
        self._programs: dict[tuple[Spec, int], Stepper] = {}
        self._refused: set[tuple[Spec, int]] = set()  # would not compile, and are not tried again until the page asks
        self._compiling: tuple[Spec, int] | None = None
        self._fits: dict[str, Fit] = {}
        self._clock, self._stop = 0, STEPS
        self._most = 100  # steps between two pictures
        self._shown, self._published = 0, 0.0  # the step of the last picture, and when
        self._looking = 0.0  # seconds that a picture takes
        self.picture: Picture | None = None
        self.rate = 0.0  # steps per second of the clock

    # ---- commands

    def reset(self):
        """Back to step 0 with the settings as they are, the shipped ones too."""
        self._put(self._reset)

    def most(self, steps: int):
        """At most so many steps between two pictures."""
        self._put(setattr, self, "_most", int(steps))

    def apply(self, setup: WaveSetup):
        """Other settings. What is trained goes on from where it is, unless the width or the seed has changed."""
        self._put(self._apply, setup)

    @property
    def paused_at(self) -> int:
        """The step that a link says: 0 while it plays."""
        return 0 if self._playing else self._clock

    @property
    def training(self) -> bool:
        """Whether it computes."""
        return self._awake and self._playing and not self._closed

    # ---- the worker

    def _begin(self):
        self._clock = self._shown = self._first_step()
        self._stop = self._setup.steps or STEPS
        if self._clock >= self._stop:
            self._pause()
        self._ask()

    def _first_step(self) -> int:
        """The step at which the setup begins: where it comes trained that one, unless a link asks for an earlier one."""
        return STEPS if is_shipped(self._setup) and not 0 < self._setup.steps < STEPS else 0

    def _busy(self) -> bool:
        return bool(self._live()) and (self._playing or self._dirty or self._behind() != [])

    def _failed(self, error: Exception):
        self._pause(note(log, "wave", error))

    def _live(self) -> dict[str, Fit]:
        """The methods whose program is there, each with its state, which is made or moved to another program here."""
        live = {}
        for method in self._setup.methods:
            spec = self._setup.spec(method)
            stepper = self._programs.get((spec, self._setup.rows))
            if stepper is None:
                continue
            fit = self._fits.get(method)
            if fit is None or fit.spec != spec:
                trained = fit is None and self._clock >= STEPS and is_shipped(self._setup)
                state = (
                    shipped_state(stepper, method)
                    if trained
                    else stepper.reset(self._setup.seed, self._setup.knobs_of(method))
                )
                step = STEPS if trained else 0 if fit is None else fit.step
                self._fits[method] = Fit(spec, stepper, state if fit is None else moved(fit.state, state), step)
                self._dirty = True
            live[method] = self._fits[method]
        return live

    def _behind(self) -> list[str]:
        return [name for name, fit in self._live().items() if fit.step < self._clock and not fit.diverged]

    def _turn(self):
        """Some steps if there is anything to do, and a picture if it is time."""
        free = self._streamer.wait_slot(0.02)
        now = time.monotonic()
        if self._playing or self._behind():
            self._train()  # not far beyond the last picture: where nobody looks it stops there
            if self._first and self._first.training:
                time.sleep(min(time.monotonic() - now, LONGEST_REST))
        if free and (not self._playing or now - self._published > max(INTERVAL, 2 * self._looking)):
            self._look()

    def _train(self):
        live = self._live()
        names = self._behind()
        if names:  # a method that came later, or that was compiling, runs up to the others first
            goal = self._clock
        else:
            names = [name for name, fit in live.items() if not fit.diverged]
            if not names:
                return self._pause("Every method has diverged: a smaller learning rate, then Train from scratch.")
            # The first pictures are a few steps apart, since most is to be seen at the start; and those that still
            # compile are not left far behind.
            pace = 2 if self._compiling else max(5, self._clock // 10)
            goal = min(self._stop, self._shown + min(self._most, pace))
            if goal <= self._clock:
                if self._streamer.wait_slot(0.05):
                    time.sleep(0.005)  # until the next picture is due
                return
        seconds = sum(live[name].seconds for name in names)
        steps = max(1, int(SLICE / seconds)) if seconds else 1
        for name in names:
            self._advance(name, live[name], min(goal, live[name].step + steps))
        reached = min((live[name].step for name in names if not live[name].diverged), default=self._clock)
        self._clock = max(self._clock, reached)
        if self._playing and self._clock >= self._stop and not self._behind():
            self._pause()

    def _advance(self, name: str, fit: Fit, goal: int):
        if goal <= fit.step:
            return
        goal = fit.step + fit.pace.grant(goal - fit.step)
        started, before = time.perf_counter(), fit.step
        fit.state = fit.stepper.advance(fit.state, self._setup.knobs_of(name), goal - before)
        fit.step = int(fit.state.step)
        fit.spent = 0.9 * fit.spent + time.perf_counter() - started
        fit.taken = 0.9 * fit.taken + fit.step - before
        if fit.step < goal:
            fit.diverged = True
            self._tell(
                {
                    "alarm": f"{label_of(name)} diverged at step {fit.step + 1}: a smaller learning rate, then Train from scratch."
                }
            )

    def _look(self):
        started = time.perf_counter()
        self._dirty, setup = False, self._setup
        found = {
            name: seen(
                fit.spec,
                fit.state.particles,
                setup,
                name,
                fit.step,
                1 / fit.seconds if fit.seconds else 0.0,
                fit.diverged,
            )
            for name, fit in self._live().items()
        }
        self.picture = Picture(self._clock, setup, found)
        self._streamer.publish(pack(self._row, self._clock, found))
        now = time.monotonic()
        rate = max(0, self._clock - self._shown) / max(now - self._published, 1e-3)
        self.rate += 0.2 * (rate - self.rate) if self.rate else rate
        self._shown, self._published = self._clock, now
        self._looking = time.perf_counter() - started

    # ---- what the commands do

    def _play(self, on: bool):
        if on and self._clock >= self._stop:
            self._stop = 2**31 - 1  # the user wants more than the paper
        self._playing, self._dirty, self.rate = on, True, 0.0
        self._tell({"playing": on, "alarm": ""})
        if on:
            self._try_again()

    def _pause(self, alarm: str = ""):
        self._playing, self._dirty = False, True
        self._tell({"playing": False, **({"alarm": alarm} if alarm else {})})

    def _one_step(self):
        self._stop = max(self._stop, self._clock + 1)
        self._pause()
        for name, fit in self._live().items():
            if fit.step == self._clock and not fit.diverged:
                self._advance(name, fit, self._clock + 1)
        self._clock += 1

    def _reset(self, step: int = 0):
        self._fits, self._clock, self._shown, self._stop = {}, step, step, STEPS
        self._dirty = True
        self._tell({"alarm": ""})
        self._try_again()
        if not self._live():  # the old one's numbers are another network's
            self.picture = None

    def _apply(self, setup: WaveSetup):
        old, self._setup = self._setup, setup
        self._dirty = True
        if (setup.width, setup.seed) != (old.width, old.seed):
            ended = self._clock >= self._stop
            self._reset(self._first_step())
            if self._clock >= self._stop:
                self._pause()
            elif ended:  # training had ended, not been stopped
                self._play(True)
        elif setup.posterior() != old.posterior() and not self._playing and self._clock >= self._stop:
            self._stop = self._clock + MORE  # the band answers although training had ended
            self._play(True)
        self._try_again()

    def _sleep(self, on: bool):
        super()._sleep(on)
        self._ask()

    def _try_again(self):
        """What was refused, since the page asks for something."""
        self._refused.clear()
        self._ask()

    def _ask(self):
        """Have compiled what the setup needs, one program after the other: so something moves sooner."""
        waiting = {
            key: method for key, method in self._wanted().items() if key not in {*self._programs, *self._refused}
        }
        if waiting and self._awake and self._compiling not in waiting:  # what it compiles may not be wanted any more
            self._compiling, method = next(iter(waiting.items()))
            COMPILERS.submit(self._compile, method, self._setup)
        self._tell({"status": f"compiling {', '.join(map(label_of, waiting.values()))} …" if waiting else ""})

    def _wanted(self) -> dict[tuple[Spec, int], str]:
        """The method of each program that the setup needs, what compiles quickly first."""
        setup = self._setup
        return {(setup.spec(name), setup.rows): name for name in sorted(setup.methods, key=effort)}

    def _compile(self, method: str, setup: WaveSetup):
        """On a compiler thread: everything that the worker will call, so that it never waits for a compile."""
        stepper, problem, key = None, "", (setup.spec(method), setup.rows)
        if not self._closed and key in self._wanted():
            try:
                knobs = setup.knobs_of(method)
                stepper = compile(key[0], look=False)
                state = stepper.advance(stepper.reset(setup.seed, knobs), knobs, 0)
                seen(key[0], state.particles, setup, method, 0, 0.0, False)
            except Exception as error:
                problem = note(log, "compile", error)
        self._put(self._compiled, key, stepper, problem)

    def _compiled(self, key: tuple[Spec, int], stepper: Stepper | None, problem: str):
        wanted = self._wanted()
        if self._compiling == key:
            self._compiling = None
        if problem and key in wanted:
            self._refused.add(key)
            self._tell({"alarm": problem})
            if self._refused.issuperset(wanted):  # else the others train
                self._pause()
        elif stepper is not None and not problem:  # else nobody wanted it when its turn came
            self._programs[key] = stepper
            self._programs = {key: program for key, program in self._programs.items() if key in wanted}
        self._dirty = True
        self._ask()
