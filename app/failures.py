"""What the server's log keeps of a failure."""

import linecache
import logging
import traceback


def refused(error: BaseException) -> bool:
    """Whether a check of ours has raised this ValueError on purpose: numpy, JAX and Python raise some too, and may leave
    our own line, which called them, as the innermost one."""
    frame, number = list(traceback.walk_tb(error.__traceback__))[-1]
    ours = frame.f_globals.get("__name__", "").partition(".")[0] in ("app", "stein_core")
    line = linecache.getline(frame.f_code.co_filename, number).strip()
    return isinstance(error, ValueError) and ours and line.startswith("raise ")


def note(log: logging.Logger, what: str, error: BaseException) -> None:
    """One line for what we refuse, with a traceback for all else."""
    if refused(error):
        log.warning("%s: refused: %s", what, error)
    else:
        log.error(what, exc_info=error)
