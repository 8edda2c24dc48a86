"""What the server's log keeps of a failure, and what the visitor reads."""

import linecache
import logging
import traceback

from stein_core.base.errors import short


def refused(error: BaseException) -> bool:
    """Return whether a check of ours raised this ValueError or OSError on purpose.

    NumPy, JAX and Python raise them too. Our line that called them may then be the innermost frame, so that line must
    be a `raise`.
    """
    frame, number = list(traceback.walk_tb(error.__traceback__))[-1]
    ours = frame.f_globals.get("__name__", "").partition(".")[0] in ("steinlab", "stein_core")
    line = linecache.getline(frame.f_code.co_filename, number).strip()
    return isinstance(error, (ValueError, OSError)) and ours and line.startswith("raise ")


def note(log: logging.Logger, what: str, error: BaseException) -> str:
    """Log an error: one line if a check of ours raised it, else the traceback.

    Args:
        log: the logger.
        what: what failed, for the log.
        error: the exception.

    Returns:
        The sentence that the visitor reads.
    """
    if refused(error):
        log.warning("%s: refused: %s", what, error)
        return str(error)
    log.error(what, exc_info=error)
    first_line = str(error).partition("\n")[0]
    return f"{type(error).__name__}: {short(first_line)}"
