"""Messages from a loop to the process that shows it: two lengths, a JSON object, and bytes of float32."""

from __future__ import annotations

import json
import struct
from typing import Any, BinaryIO

import numpy as np

LENGTHS = struct.Struct("<II")


def put(pipe: BinaryIO, head: dict[str, Any], *arrays: np.ndarray) -> None:
    """Write one message. The arrays are flat on the other side."""
    text, body = json.dumps(head).encode(), b"".join(np.asarray(one, "<f4").tobytes() for one in arrays)
    pipe.write(LENGTHS.pack(len(text), len(body)) + text + body)
    pipe.flush()


def get(pipe: BinaryIO) -> tuple[dict[str, Any], np.ndarray] | None:
    """Read one message; None if the other side has closed the pipe."""
    lengths = pipe.read(LENGTHS.size)
    if len(lengths) < LENGTHS.size:
        return None
    head, body = LENGTHS.unpack(lengths)
    text, values = pipe.read(head), pipe.read(body)
    if len(text) < head or len(values) < body:
        return None
    return json.loads(text), np.frombuffer(values, "<f4")
