"""What the server's log keeps of a failure, and what the visitor reads."""

import linecache
import logging
import traceback

from stein_core.errors import short


def refused(error: BaseException) -> bool:
    """Whether a check of ours has raised this ValueError or OSError on purpose: numpy, JAX and Python raise some too, and
    may leave our own line, which called them, as the innermost one."""
    frame, number = list(traceback.walk_tb(error.__traceback__))[-1]
    ours = frame.f_globals.get("__name__", "").partition(".")[0] in ("app", "stein_core")
    line = linecache.getline(frame.f_code.co_filename, number).strip()
    return isinstance(error, (ValueError, OSError)) and ours and line.startswith("raise ")


def note(log: logging.Logger, what: str, error: BaseException) -> str:
    """One line in the log for what we refuse, with a traceback for all else. Returns the visitor's sentence."""
    if refused(error):
        log.warning("%s: refused: %s", what, error)
        return str(error)
    log.error(what, exc_info=error)
    first_line = str(error).partition("\n")[0]
    return f"{type(error).__name__}: {short(first_line)}"
