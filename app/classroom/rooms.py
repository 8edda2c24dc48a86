"""All classes of this server: their codes, and what of them outlives the process."""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import os
import re
import secrets
import time
from pathlib import Path

from stein_core import cache_folder
from stein_core.base.errors import short
from steinlab.classroom.room import Room

log = logging.getLogger(__name__)

LETTERS = "23456789ABCDEFGHJKMNPQRSTUVWXYZ"  # none is taken for another one
LENGTH = 8
LASTS = 12 * 3600.0  # seconds without its lecturer after which a class ends
MOST = 100  # classes at a time
PROCESS = os.environ.get("STEINLAB_PROCESS", "")  # first letter of every code here: a proxy finds the process by it
if PROCESS not in ("", *LETTERS):
    raise ValueError(f"STEINLAB_PROCESS = {short(PROCESS)!r}; allowed: one of {LETTERS}.")
WRONG, REFILL = 60, 0.5  # wrong codes at once from one address, and how many more each second
WRONG_IN_ALL = 2000  # wrong codes at once from all addresses, which refill at 10 a second


class Allowance:
    """Count what one address may still get wrong.

    Args:
        most: at once.
        refill: more a second.
    """

    def __init__(self, most: float, refill: float):
        self.most, self.refill = most, refill
        self.left, self.then = most, time.monotonic()

    @property
    def now(self) -> float:
        """How much is left."""
        now = time.monotonic()
        self.left, self.then = min(self.most, self.left + (now - self.then) * self.refill), now
        return self.left

    def take(self) -> None:
        """Note one that was wrong."""
        self.left = self.now - 1


class Rooms:
    """Hold the classes of one process.

    Args:
        folder: a file of each class lies there as long as the class lasts.
    """

    def __init__(self, folder: Path | None = None):
        self.folder = folder
        self.open: dict[str, tuple[Room, str]] = {}  # code -> the class, and what its key hashes to
        self.wrong: dict[str, Allowance] = {}
        self.in_all = Allowance(WRONG_IN_ALL, 10.0)

    def begin(self) -> tuple[Room, str]:
        """Open a class.

        Returns:
            It, and the key by which its lecturer comes back.

        Raises:
            ValueError: if there are too many.
        """
        self.sweep()
        if len(self.open) >= MOST:
            raise ValueError(f"There are {MOST} classes on this server already. Try again later.")
        code = PROCESS + "".join(secrets.choice(LETTERS) for _ in range(LENGTH - len(PROCESS)))
        key = secrets.token_urlsafe(18)
        self._append(code, {"key": digest(key)})
        self._append(code, {"process": os.getpid()})
        self.open[code] = self._room(code), digest(key)
        return self.open[code][0], key

    def resume(self, code: str, key: str) -> Room | None:
        """Return the class of a lecturer who comes back; None if code or key is wrong."""
        known = self._look(code, over=True) if is_code(code) else None
        return known[0] if known and hmac.compare_digest(known[1], digest(key)) else None

    def find(self, code: str, address: str) -> Room | None:
        """Return the class of a follower's code, None if there is none.

        Args:
            code: what the follower has typed.
            address: from where; each has an allowance of wrong codes.

        Raises:
            PermissionError: after too many wrong codes.
        """
        allowance = self.wrong.get(address) or Allowance(WRONG, REFILL)
        if allowance.now < 1 or self.in_all.now < 1:
            raise PermissionError("Too many wrong codes. Wait a minute.")
        known = self._look(code := code.upper().replace("-", "").replace(" ", "")) if is_code(code) else None
        if known is None:
            if len(self.wrong) > 10_000:
                self.wrong = {one: a for one, a in self.wrong.items() if a.now < a.most}
            self.wrong[address] = allowance
            allowance.take()
            self.in_all.take()
            return None
        return known[0]

    def end(self, room: Room) -> None:
        """End a class; nothing of it stays."""
        room.tell({"end": True})
        self.open.pop(room.code, None)
        if path := self._path(room.code):
            path.unlink(missing_ok=True)

    def sweep(self) -> None:
        """End the classes that their lecturers have left long ago."""
        for room, _ in [*self.open.values()]:
            if time.monotonic() - room.seen > LASTS:
                self.end(room)
        for path in self._folder().glob("*.jsonl") if self._folder() else ():
            if path.stem not in self.open and self._age(path) > LASTS:
                path.unlink(missing_ok=True)

    # ---- files

    def _folder(self) -> Path:
        folder = self.folder or cache_folder() / "classes"
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def _age(self, path: Path) -> float:
        """Return how many seconds ago a file was changed, by the clock of the file system."""
        clock = self._folder() / "clock"
        clock.touch()
        return clock.stat().st_mtime - path.stat().st_mtime

    def _path(self, code: str) -> Path:
        return self._folder() / f"{code}.jsonl"

    def _room(self, code: str) -> Room:
        return Room(code, lambda fact: self._append(code, fact))

    def _append(self, code: str, fact: dict) -> None:
        with open(self._path(code), "a", encoding="utf-8") as file:
            file.write(json.dumps(fact) + "\n")

    def _look(self, code: str, over: bool = False) -> tuple[Room, str] | None:
        """Return a class of this process, or of one before it that has died. over: or lives: the number of a process
        that has died may be another one's now."""
        if code in self.open:
            return self.open[code]
        path = self._path(code)
        if not code.startswith(PROCESS) or not path.exists() or self._age(path) > LASTS:
            return None
        room, key, owner = self._room(code), "", 0
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                fact = json.loads(line)
                if "key" in fact:
                    key = fact["key"]
                elif "process" in fact:
                    owner = fact["process"]
                else:
                    room.restore(fact)
            except (ValueError, KeyError, TypeError) as error:  # the last line, if the process died within it
                log.warning("class %s: left out a line that cannot be read: %s", code, error)
        if not key or not over and owner != os.getpid() and is_alive(owner):  # another process has this class
            return None
        self._append(code, {"process": os.getpid()})
        self.open[code] = room, key
        return self.open[code]


def is_code(text: str) -> bool:
    """Whether a text can be a code. It may name no file but a class's."""
    return bool(re.fullmatch(f"[{LETTERS}]{{{LENGTH}}}", text.upper().replace("-", "").replace(" ", "")))


def is_alive(process: int) -> bool:
    """Whether a process of this machine runs."""
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True


def digest(key: str) -> str:
    """Return what is kept of a key."""
    return hashlib.sha256(key.encode()).hexdigest()


def readable(code: str) -> str:
    """Write a code in two groups."""
    return f"{code[: LENGTH // 2]}-{code[LENGTH // 2 :]}"


ROOMS = Rooms()
