"""A button that takes one file from the browser."""

from __future__ import annotations

from collections.abc import Callable

import panel_material_ui as pmui

from stein_core.base.errors import short
from steinlab.server.limits import LIMITS
from steinlab.server.messages import CheckedMessages, one_of, text

LONGEST = 1_000_000 * LIMITS.upload_mb  # bytes of a file, or characters of pasted text, that are read


class Upload(CheckedMessages, pmui.FileInput):
    """Take one file of at most LIMITS.upload_mb, which comes in parts.

    Args:
        chosen: chosen(bytes) is called with the content.
        refused: refused(sentence) is called instead if the file was not read.
        accept: suffixes of the files that are offered.

    Attributes:
        file: the name of the last file.
    """

    schemas = (
        {"status": one_of("upload_event"), "data": lambda data: isinstance(data, bytes), "name": text},
        {"status": one_of("initializing", "finished", "error")},
    )

    def __init__(
        self, chosen: Callable[[bytes], None], refused: Callable[[str], None], accept: str = ".csv,.txt", **params
    ):
        super().__init__(accept=accept, max_file_size=LONGEST, multiple=False, **params)
        self.chosen, self.refused = chosen, refused
        self.parts, self.received, self.file = [], 0, ""

    def handle_message(self, data) -> None:
        status = data["status"]
        if status == "upload_event":
            self.received += len(data["data"])
            self.file = short(data["name"])
            if self.received <= LONGEST:
                self.parts.append(data["data"])
            return
        content, size = b"".join(self.parts), self.received
        self.parts, self.received = [], 0
        if status == "error" or size > LONGEST:  # our script refuses a large file, another client may not
            self.refused(f"The file was not read; allowed: at most {LIMITS.upload_mb} MB (STEINLAB_UPLOAD_MB).")
        elif status == "finished":
            self._send_msg(data)
            self.chosen(content)
