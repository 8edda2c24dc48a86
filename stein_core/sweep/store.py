"""The rows of sweeps on disk."""

from __future__ import annotations

import json
import logging
import os
import sqlite3
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Callable, Iterable

from stein_core.base.errors import short

MAGIC = b"SQLite format 3\0"  # with which every SQLite file begins, unless it is empty
PATIENCE = 30.0  # seconds to wait for another process that writes the store
INSERT = """
INSERT INTO rows VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET row = excluded.row
WHERE (SELECT count(*) FROM json_each(excluded.row)) > (SELECT count(*) FROM json_each(rows.row))
"""
log = logging.getLogger(__name__)


class Store:
    """The rows of sweeps in one SQLite file, safe for several threads and processes.

    A damaged SQLite file is set aside under another name (`set_aside` says which), and a new one is begun. Any other
    file is left as it is.

    Raises:
        ValueError: names the path: the folder does not exist, the path is a folder or no SQLite file.
        sqlite3.OperationalError: the file is read-only, or another process has it locked for PATIENCE seconds.
    """

    def __init__(self, path: str | Path):
        self.path, self.set_aside = Path(path), None
        if not self.path.parent.is_dir():
            raise ValueError(
                f"store = {short(path)!r}: there is no such folder; allowed: a file in a folder that exists."
            )
        if self.path.is_dir():
            raise ValueError(f"store = {short(path)!r} is a folder; allowed: a file in a folder that exists.")
        self._lock = threading.Lock()
        self._refuse_others()
        try:
            self._open()
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError):  # locked, read-only, disk full: the file itself is sound
                raise
            self._begin_anew()

    def _open(self):
        self._file = self._inode()
        self._db = sqlite3.connect(self.path, timeout=PATIENCE, check_same_thread=False)
        until = time.monotonic() + PATIENCE
        while True:
            try:
                self._db.execute("PRAGMA journal_mode = WAL")
                break
            except sqlite3.OperationalError as error:  # for this SQLite itself does not always wait
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                    raise
                time.sleep(0.05)
        self._db.execute("CREATE TABLE IF NOT EXISTS rows (key TEXT PRIMARY KEY, row TEXT NOT NULL)")
        if self._db.execute("PRAGMA quick_check").fetchone() != ("ok",):
            raise sqlite3.DatabaseError("damaged")
        self._db.commit()
        self._file = self._inode()

    def _inode(self) -> int | None:
        return self.path.stat().st_ino if self.path.exists() else None

    def _refuse_others(self):
        """Raise ValueError if the file is there and is none of SQLite's: it may be a user's own."""
        if self.path.exists():
            with self.path.open("rb") as file:
                if file.read(len(MAGIC)) not in (b"", MAGIC):
                    raise ValueError(
                        f"store = {short(self.path)!r} is no SQLite file, and is left as it is; "
                        "allowed: a store, or the name of a new file."
                    )

    def _begin_anew(self):
        self._db.close()
        self._refuse_others()
        if self._inode() == self._file:  # else another process has been here before
            self.set_aside = self.path.with_name(f"{self.path.name}.damaged-{time.time_ns()}")
            for part in (
                "",
                "-wal",
                "-shm",
            ):  # else who still has the damaged file open would write into the new one's log
                with suppress(FileNotFoundError):
                    os.replace(f"{self.path}{part}", f"{self.set_aside}{part}")
        self._open()

    def _sound(self, work: Callable[[], Any]) -> Any:
        """What `work` gives, of a new file where this one is found to be damaged. Under the lock."""
        with self._lock:
            try:
                return work()
            except sqlite3.DatabaseError as error:
                if getattr(error, "sqlite_errorcode", None) not in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
                    raise
                self._begin_anew()
                log.warning("%s was damaged; what it was is set aside and a new one is begun.", self.path)
                return work()

    def add(self, row: dict[str, Any]) -> None:
        """Keep a row, on disk when this returns. A key that is there already keeps its row, unless the new one has more
        columns.

        Raises:
            OSError: there is no room for it.
        """

        def insert():
            with self._db:
                self._db.execute(INSERT, (row["key"], json.dumps(row)))

        try:
            self._sound(insert)
        except sqlite3.OperationalError as error:
            raise OSError(f"{self.path.name} takes no more rows: {error}. Those that it has are kept.") from error

    def rows(self, keys: Iterable[str] | None = None) -> list[dict[str, Any]]:
        """All rows in the order in which they came, or those of `keys` in their order."""
        keys = keys if keys is None else list(keys)

        def select():
            if keys is None:
                return self._db.execute("SELECT row FROM rows ORDER BY rowid").fetchall()
            one = "SELECT row FROM rows WHERE key = ?"
            return [hit for key in keys for hit in self._db.execute(one, (key,))]

        return [json.loads(text) for (text,) in self._sound(select)]

    def close(self) -> None:
        """No more of it: the file can be moved then."""
        self._db.close()
