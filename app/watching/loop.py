"""The side of the loop: take the particles as they come, and hand them on without holding the loop up."""

from __future__ import annotations

import json
import math
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from stein_core import Spec, Target, target_of
from stein_core.base.errors import short
from stein_core.base.samples import stein_traces
from stein_core.targets.own.density import in_precision_of
from steinlab.watching.opening import open_page
from steinlab.watching.pipe import put
from steinlab.watching.recording import Recording, Seen
from steinlab.watching.still import about_of, ghosts_of

FRAMES = 60.0  # a second
SHARE = 0.03  # of the loop's time that taking frames may cost
TRACE_EVERY, TRACE_SHARE = 0.5, 0.02  # seconds between two Stein traces, and the share of the time that they may take
TRACE_LAST = 5.0  # seconds that the Stein trace of the last frame may take
AHEAD = 64  # frames that may wait for their computation
PATIENCE = 60.0  # seconds until the page must answer


def watch(
    target: Target | Spec | str | None = None,
    *,
    title: str = "",
    record: str | os.PathLike | None = None,
    show: bool | None = None,
    address: str = "127.0.0.1",
    port: int = 0,
) -> Watch:
    """Show the particles of a loop of your own while it runs.

    ::

        with steinlab.watch(target, record="run.npz") as see:
            for key in keys:
                state, _ = step(key, state)
                see(state.particles)

    A process of its own draws them at a local address, over the density of `target`. `see` takes at most 60 frames a
    second, and fewer if each takes more than 3 % of the loop's time. The page stays after the loop until it is closed.

    Args:
        target: whose density is drawn: a Target, a Spec, or a registered name; None: none is.
        title: of the panel; by default the target's name.
        record: file for the recording, an .npz. `see.recording` has the same arrays.
        show: whether to open a browser, or a frame in Jupyter; None: if there is a screen.
        address: where the page is served. Only this machine sees "127.0.0.1"; "0.0.0.0" is for everybody.
        port: of the page; 0: a free one.

    Raises:
        ValueError: an unknown name, a folder that is not there, or an address that this machine does not have.
        RuntimeError: the page cannot start, for example because something else uses the port.
    """
    return Watch(target, title, record, show, address, port)


class Watch:
    """Take particles from a loop, see `watch`.

    Attributes:
        url: of the page, once the block was entered.
        recording: dict of arrays, see `Recording.arrays`.
    """

    def __init__(self, target, title, record, show, address, port):
        if isinstance(target, str):
            target = Spec(target)
        self._spec = target if isinstance(target, Spec) else None if target is None else Spec(target)
        self._target = None if self._spec is None else target_of(self._spec)
        if record is not None and not Path(record).absolute().parent.is_dir():
            raise ValueError(f"record = {short(str(record))!r}: there is no folder {Path(record).absolute().parent}.")
        if not 0 <= port < 2**16:
            raise ValueError(f"port = {short(port)} is out of range; allowed: 0 to {2**16 - 1}.")
        try:
            socket.getaddrinfo(address, port)
        except OSError:
            raise ValueError(f"address = {short(address)!r} is unknown; allowed: '127.0.0.1', '0.0.0.0'.") from None
        named = [] if self._spec is None else [self._target.name, self._spec.target]
        self._title = title or next((name for name in named if name and isinstance(name, str)), "Particles")
        self._record, self._show, self._address, self._port = record, show, address, port
        self._scores = self._unconstrain = None  # compiled functions
        self._changed = threading.Condition()
        self._waiting: deque[tuple] = deque(maxlen=AHEAD)  # frames that were taken
        self._last: tuple | None = None  # what the loop showed last
        self._shape: tuple[int, ...] | None = None
        self._step, self._spent = 0, 0.0  # calls, and the mean seconds of those that took a frame
        self._next, self._next_trace, self._began = 0.0, 0.0, 0.0  # moments of time.monotonic()
        self._traced = 0.0  # seconds that the last Stein trace took
        self._ending = self._ended = self._alone = self._donated = False
        self._kept: Recording | None = None
        self.url = ""

    @property
    def recording(self) -> dict[str, np.ndarray]:
        return (self._kept or Recording(())).arrays()

    # ---- the loop's thread

    def __call__(self, particles: Any, scales: Any = None) -> None:
        """Show particles. Call it once a step: the calls are counted.

        Args:
            particles: (n, d), or (n,) if d is 1; a dict of a model's values, (n, ...) each; or a function that returns
                one of these, which is called only if a frame is due.
            scales: (n, d) standard deviations of guides, drawn as ellipses; or None.

        Raises:
            ValueError: a shape that does not fit the target or the frames before, or a call within compiled code.
        """
        now = time.monotonic()
        self._step += 1
        self._last = self._step, particles, scales
        if now < self._next or not self.url:
            return
        first = self._shape is None  # it compiles
        try:
            self._take(self._last, now)
        except BaseException:
            self._last = None
            raise
        if not first:
            self._spent += (time.monotonic() - now - self._spent) / 8
        pause = max(1 / FRAMES, self._spent / SHARE)
        self._next = max(self._next, now - pause) + pause  # steps do not end when a frame is due: it makes up for that

    def _take(self, seen: tuple, now: float) -> None:
        """Hold what the loop shows, and wake the other thread."""
        step, particles, scales = seen
        first = self._shape is None
        values = held(self._named(particles() if callable(particles) else particles), "particles", self._donated)
        self._check(values.shape)
        scales = None if scales is None else held(scales, "scales", self._donated)
        if scales is not None and scales.shape != values.shape:
            raise ValueError(f"scales have shape {scales.shape}; allowed: that of the particles, {values.shape}.")
        if first:
            d = 1 if values.ndim == 1 else values.shape[1]
            names = self._target.coordinates if self._target else tuple(f"x{i + 1}" for i in range(d))
            self._kept = Recording(tuple(names))
        with self._changed:
            self._waiting.append((step, now - self._began, values, scales))
            self._changed.notify()

    def _named(self, particles: Any) -> Any:
        """Return particles (n, d) of a model's values by name."""
        if not isinstance(particles, Mapping):
            return particles
        if self._target is None or self._target.unconstrain is None:
            raise ValueError("particles are a dict, and no target says how to read it; allowed: an array (n, d).")
        if self._unconstrain is None:
            self._unconstrain = jax.jit(jax.vmap(self._target.unconstrain))
        try:
            with in_precision_of(self._target):
                return self._unconstrain({name: jnp.asarray(values, float) for name, values in particles.items()})
        except KeyError as error:
            there = ", ".join(particles)
            raise ValueError(f"particles have no values of {short(error)}; there are: {there}.") from None

    def _check(self, shape: tuple[int, ...]) -> None:
        d = self._target.dim if self._target else None
        fits = len(shape) == 2 and shape[1] == (d or shape[1]) or len(shape) == 1 and d in (1, None)
        if not fits or not min(shape, default=0):
            raise ValueError(f"particles have shape {shape}; allowed: (n, {d or 'd'}), with n at least 1.")
        if self._shape not in (None, shape):
            raise ValueError(f"particles have shape {shape}, and had {self._shape} before; allowed: the same.")
        self._shape = shape

    # ---- begin and end

    def __enter__(self) -> Watch:
        self._errors = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "steinlab.watching", self._address, str(self._port)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, start_new_session=True,
            env={**os.environ, "JAX_PLATFORMS": "cpu"},
        )  # fmt: skip
        try:
            about, ghosts = about_of(self._spec, self._target, self._title), ghosts_of(self._target)
            with suppress(BrokenPipeError):  # it has failed, and has said why
                put(self._process.stdin, about, ghosts)
            self.url = self._answered()
        except BaseException:
            self._process.kill()
            raise
        self._began = time.monotonic()
        self._thread = threading.Thread(target=self._feed, name="watch", daemon=True)
        self._thread.start()
        open_page(self.url, self._show)
        return self

    def __exit__(self, kind, error, trace) -> None:
        try:
            if self._last is not None and error is None:
                self._ending = True
                self._take(self._last, time.monotonic())
        finally:
            self._end("" if error is None else f"The loop ended with {kind.__name__}: {short(error)}")

    def _end(self, said: str) -> None:
        """Tell the page that the loop has ended, and keep the recording."""
        self._ended = True
        with self._changed:
            self._changed.notify()
        self._thread.join(PATIENCE)
        if self._thread.is_alive():  # the page takes nothing more
            self.close()
        self._tell({"ended": said})
        with suppress(OSError):  # it has ended
            self._process.stdin.close()
        self.url = ""
        if self._record is not None and self._kept is not None:
            self._kept.save(str(self._record))

    def close(self) -> None:
        """End the page now."""
        self._process.kill()
        self._process.wait()

    def _answered(self) -> str:
        """Return the address of the page, when it answers."""
        timer = threading.Timer(PATIENCE, self._process.kill)
        timer.start()
        line = self._process.stdout.readline()
        timer.cancel()
        if not line:
            self._errors.seek(0)
            said = self._errors.read().strip().splitlines() or ["it did not answer"]
            where = f"{self._address}, port {self._port}"
            raise RuntimeError(f"The page of `watch` could not start at {where}: {short(said[-1])}.")
        host = "127.0.0.1" if self._address in ("0.0.0.0", "::") else self._address
        return f"http://{host}:{json.loads(line)['port']}/"

    # ---- the other thread

    def _feed(self) -> None:
        """Hand on the frames that were taken, in order. If this side is late, the newest that is computed counts."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._ended)
                if not self._waiting:
                    return
                seen = self._waiting.popleft()
                while self._waiting and is_ready(self._waiting[0][2]):
                    seen = self._waiting.popleft()
                last = self._ending and not self._waiting
            step, seconds, values, scales = seen
            try:
                values = np.asarray(values, np.float32).reshape(len(values), -1)
                scales = None if scales is None else np.asarray(scales, np.float32).reshape(values.shape)
            except RuntimeError:
                if not any(isinstance(one, jax.Array) and one.is_deleted() for one in (seen[2], seen[3])):
                    raise
                self._donated = True  # the loop donates its arrays to the next step: from now on they are copied
                continue
            frame = Seen(step, seconds, values, scales, self._trace(values, scales, last))
            if math.isnan(frame.trace) and self._kept.frames and self._kept.frames[-1].step == step:
                continue  # the last frame, which was there already
            self._kept.add(frame)
            trace = None if math.isnan(frame.trace) else frame.trace
            head = {"step": step, "seconds": seconds, "shape": values.shape, "trace": trace}
            self._tell(head, values, *([] if scales is None else [scales]))

    def _trace(self, particles: np.ndarray, scales: np.ndarray | None, last: bool) -> float:
        """Return the Stein trace of points, or NaN if it is not due.

        Its gradients may take TRACE_SHARE of the time. That of the last frame is due unless it takes
        longer than TRACE_LAST.
        """
        now = time.monotonic()
        due = now >= self._next_trace or last and self._traced <= TRACE_LAST
        if self._target is None or scales is not None or not due or len(particles) < 2:
            return math.nan
        try:
            with in_precision_of(self._target):
                points = jnp.asarray(particles, float)
                if self._scores is None:
                    self._scores = jax.jit(jax.vmap(jax.grad(self._target.log_density)))
                    self._scores(points)  # compiles
                    now = time.monotonic()
                found = stein_traces(particles, np.asarray(self._scores(points))).mean()
        except Exception as error:  # a density of the user's: the loop must go on
            self._next_trace = self._traced = math.inf
            self._warn(f"no Stein trace, {type(error).__name__}: {short(error)}")
            return math.nan
        self._traced = time.monotonic() - now
        self._next_trace = now + max(TRACE_EVERY, self._traced / TRACE_SHARE)
        return float(found)

    def _tell(self, head: dict[str, Any], *arrays: np.ndarray) -> None:
        if self._alone:
            return
        try:
            put(self._process.stdin, head, *arrays)
        except OSError:
            self._alone = True
            self._warn("its page has ended")

    def _warn(self, text: str) -> None:
        warnings.warn(f"watch: {text}. The loop and its recording go on.", RuntimeWarning, stacklevel=2)


def is_ready(values: Any) -> bool:
    """Return whether an array is computed. JAX's loops run some 30 steps behind what they have asked for."""
    try:
        return not isinstance(values, jax.Array) or values.is_ready()
    except RuntimeError:  # it was donated meanwhile
        return True


def held(values: Any, name: str, copies: bool) -> Any:
    """Return what stays as it is: a JAX array itself, and a copy of what the loop may write over."""
    if isinstance(values, jax.core.Tracer):
        raise ValueError(f"{name} are traced: `see` is called within compiled code; use jax.debug.callback(see, x).")
    if isinstance(values, jax.Array):
        return jnp.copy(values) if copies else values
    return np.array(values, np.float32)
