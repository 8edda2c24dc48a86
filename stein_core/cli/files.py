"""Files that a user names on the command line: Python that is run, and arrays that are only read."""

from __future__ import annotations

import importlib.util
import os
import sys
import traceback
import zipfile
from types import ModuleType

import numpy as np

from stein_core.errors import short, unknown

MOST_BYTES = 50 * 2**20
MOST_NUMBERS = 10**6


def run_file(file: str, argument: str) -> ModuleType:
    """Run a Python file of the user's and return its module.

    Args:
        file: its path.
        argument: the option that names it, for messages.

    Raises:
        ValueError: no such file, no Python file, or what went wrong in it, with the line.
    """
    path = os.path.abspath(file)
    if not os.path.isfile(path) or not path.endswith(".py"):
        what = "is no Python file" if os.path.isfile(path) else "there is no such file"
        raise ValueError(f"{argument} {short(file)!r}: {what}; allowed: a file that ends in .py.")
    sys.path.insert(0, os.path.dirname(path))  # as `python FILE.py` does
    name = os.path.splitext(os.path.basename(path))[0]
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
        where = f", line {lines[-1]}" if lines else ""
        raise ValueError(f"{argument} {short(file)!r}{where}: {type(error).__name__}: {short(error)}") from error
    return module


def model_of(text: str):
    """Return the model that FILE.py:NAME names, after its file has run.

    Raises:
        ValueError: see `run_file`; no such name, or it is no function.
    """
    file, colon, name = text.rpartition(":")
    if not colon or not file:
        raise ValueError(f"model {short(text)!r} has no ':'; allowed: FILE.py:NAME, my_model.py:model say.")
    module = run_file(file, "model")
    callables = [key for key, value in vars(module).items() if callable(value) and not key.startswith("_")]
    if name not in vars(module):
        raise unknown(f"model in {short(file)!r}:", name, callables)
    if not callable(getattr(module, name)):
        raise ValueError(f"model {short(text)!r} is no function; allowed: {', '.join(callables)}.")
    return getattr(module, name)


def arrays_of(path: str, argument: str, limit: bool = True) -> dict[str, np.ndarray]:
    """Read the arrays of an .npz file, or the columns of a .csv file with a header. Nothing in it is executed.

    Args:
        path: the file.
        argument: the option that names it, for messages.
        limit: refuse more than 50 MB or a million numbers.

    Raises:
        ValueError: no such file, another format, too large, or a cell that is no number, with its row and column.
    """
    if not os.path.isfile(path):
        raise ValueError(f"{argument} {short(path)!r}: there is no such file.")
    if limit and os.path.getsize(path) > MOST_BYTES:
        raise ValueError(f"{argument} {short(path)!r} has {os.path.getsize(path):,} bytes; allowed: {MOST_BYTES:,}.")
    if path.endswith(".npz"):
        try:
            with np.load(path, allow_pickle=False) as file:
                found = {name: file[name] for name in file.files}
        except (ValueError, OSError, zipfile.BadZipFile) as error:
            raise ValueError(f"{argument} {short(path)!r} cannot be read: {short(error)}.") from None
    elif path.endswith(".csv"):
        found = _csv(path, argument)
    else:
        raise ValueError(f"{argument} {short(path)!r}: unknown format; allowed: .npz, .csv, .nc.")
    if limit and (numbers := sum(values.size for values in found.values())) > MOST_NUMBERS:
        raise ValueError(f"{argument} {short(path)!r} has {numbers:,} numbers; allowed: {MOST_NUMBERS:,}.")
    return found


def inference_data_of(path: str, argument: str):
    """Read ArviZ's InferenceData from a netCDF file. Nothing in it is executed.

    Raises:
        ValueError: no such file, too large, another format, or no group `posterior`.
    """
    import arviz  # not at the top: it takes a second

    if not os.path.isfile(path):
        raise ValueError(f"{argument} {short(path)!r}: there is no such file.")
    if os.path.getsize(path) > MOST_BYTES:
        raise ValueError(f"{argument} {short(path)!r} has {os.path.getsize(path):,} bytes; allowed: {MOST_BYTES:,}.")
    try:
        found = arviz.from_netcdf(path).load()
    except Exception as error:  # h5netcdf has many
        raise ValueError(f"{argument} {short(path)!r} cannot be read: {short(error)}.") from None
    if "posterior" not in found.groups():
        raise ValueError(f"{argument} {short(path)!r} has no group 'posterior'; it has: {', '.join(found.groups())}.")
    return found


def _csv(path: str, argument: str) -> dict[str, np.ndarray]:
    with open(path, encoding="utf-8-sig") as file:
        names = [name.strip() for name in file.readline().rstrip("\n").split(",")]
        rows = [line.rstrip("\n").split(",") for line in file if line.strip()]
    table = np.empty((len(rows), len(names)))
    for i, row in enumerate(rows):
        if len(row) != len(names):
            raise ValueError(f"{argument} {short(path)!r}: row {i + 2} has {len(row)} cells; allowed: {len(names)}.")
        for j, cell in enumerate(row):
            try:
                table[i, j] = float(cell)
            except ValueError:
                text = f"row {i + 2}, column {names[j]!r} is {short(cell)!r}; allowed: numbers."
                raise ValueError(f"{argument} {short(path)!r}: {text}") from None
    return {name: table[:, j] for j, name in enumerate(names)}
