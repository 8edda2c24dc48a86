"""Files that a user names on the command line: Python that is run, and arrays that are only read."""

from __future__ import annotations

import ast
import importlib.util
import os
import sys
import traceback
import zipfile
from types import ModuleType

import numpy as np

from stein_core.base.arviz_api import from_netcdf, groups_of
from stein_core.base.errors import short, unknown

MOST_BYTES = 50 * 2**20
MOST_NUMBERS = 10**6


IMPORTED: list[str] = []  # the files that --import has run; workers of a cluster run them too


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
        raise ValueError(f"model {short(text)!r} has no ':'; allowed: FILE.py:NAME, for example my_model.py:model.")
    module = run_file(file, "model")
    callables = [key for key, value in vars(module).items() if callable(value) and not key.startswith("_")]
    if name not in vars(module):
        raise unknown(f"model in {short(file)!r}:", name, callables)
    if not callable(getattr(module, name)):
        raise ValueError(f"model {short(text)!r} is no function; allowed: {', '.join(callables)}.")
    return getattr(module, name)


def without_name(file: str) -> ValueError:
    """Return the error for a Python file whose model is not named, with the nearest match. The file does not run."""
    try:
        with open(file, encoding="utf-8") as opened:
            tree = ast.parse(opened.read())
    except OSError as error:
        return ValueError(f"model {short(file)!r}: {error.strerror}.")
    except (SyntaxError, ValueError) as error:
        return ValueError(f"model {short(file)!r}: {type(error).__name__}: {short(error)}.")
    names = [node.name for node in tree.body if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")]
    if not names:
        return ValueError(f"model {short(file)!r} has no function; allowed: FILE.py:NAME of a NumPyro model.")
    near = "model" if "model" in names else names[0]
    all_of = ", ".join(f"{file}:{name}" for name in names)
    return ValueError(
        f"model {short(file)!r} names no function of the file; did you mean {short(f'{file}:{near}')!r}? "
        f"Allowed: {short(all_of)}."
    )


def arrays_of(path: str, argument: str, limit: bool = True) -> dict[str, np.ndarray]:
    """Read the arrays of an .npz file, or the columns of a .csv file with a header. Nothing in it is executed.

    Args:
        path: the file.
        argument: the option that names it, for messages.
        limit: refuse more than 50 MB or a million numbers.

    Raises:
        ValueError: no such file, another format, Python objects in it, nothing in it, too large, or a cell that is no
            number, with its row and column.
    """
    if not os.path.isfile(path):
        raise ValueError(f"{argument} {short(path)!r}: there is no such file.")
    if limit and os.path.getsize(path) > MOST_BYTES:
        raise ValueError(f"{argument} {short(path)!r} has {os.path.getsize(path):,} bytes; allowed: {MOST_BYTES:,}.")
    if path.endswith(".npz"):
        found = _npz(path, argument)
    elif path.endswith(".csv"):
        found = _csv(path, argument)
    else:
        raise ValueError(f"{argument} {short(path)!r}: unknown format; allowed: .npz, .csv, .nc.")
    if empty := [name for name, values in found.items() if limit and not values.size]:
        raise ValueError(f"{argument} {short(path)!r}: {short(empty[0])!r} has no numbers.")
    if limit and (numbers := sum(values.size for values in found.values())) > MOST_NUMBERS:
        raise ValueError(f"{argument} {short(path)!r} has {numbers:,} numbers; allowed: {MOST_NUMBERS:,}.")
    return found


def inference_data_of(path: str, argument: str):
    """Read ArviZ's InferenceData from a netCDF file. Nothing in it is executed.

    Raises:
        ValueError: no such file, too large, another format, or no group `posterior`.
    """
    if not os.path.isfile(path):
        raise ValueError(f"{argument} {short(path)!r}: there is no such file.")
    if os.path.getsize(path) > MOST_BYTES:
        raise ValueError(f"{argument} {short(path)!r} has {os.path.getsize(path):,} bytes; allowed: {MOST_BYTES:,}.")
    try:
        found = from_netcdf(path)
    except Exception as error:  # h5netcdf has many
        raise ValueError(f"{argument} {short(path)!r} cannot be read: {short(error)}.") from None
    if "posterior" not in (groups := groups_of(found)):
        raise ValueError(f"{argument} {short(path)!r} has no group 'posterior'; it has: {', '.join(groups)}.")
    return found


def _npz(path: str, argument: str) -> dict[str, np.ndarray]:
    if not zipfile.is_zipfile(path):
        raise ValueError(f"{argument} {short(path)!r} is no .npz file; allowed: arrays that numpy.savez has written.")
    found = {}
    with zipfile.ZipFile(path) as file:
        for member in file.namelist():
            try:
                with file.open(member) as stream:
                    values = np.lib.format.read_array(stream, allow_pickle=False)
            except Exception as error:  # zipfile, zlib and NumPy have many
                what = "Python objects" if "Object arrays" in str(error) else "what is no array"
                raise ValueError(
                    f"{argument} {short(path)!r} has {what} as {short(member)!r}; allowed: arrays of numbers or text."
                ) from None
            found[member.removesuffix(".npy")] = values
    if not found:
        raise ValueError(f"{argument} {short(path)!r} has no array.")
    return found


def _csv(path: str, argument: str) -> dict[str, np.ndarray]:
    """Read columns of numbers. Lines of comments and columns whose names end with __ are Stan's own, and left out."""
    with open(path, encoding="utf-8-sig") as file:
        lines = [(number, line.rstrip("\n")) for number, line in enumerate(file, 1)]
    lines = [(number, line.split(",")) for number, line in lines if line.strip() and not line.startswith("#")]
    if not lines:
        raise ValueError(f"{argument} {short(path)!r} has no header; allowed: names with commas between, then numbers.")
    names = [name.strip() for name in lines.pop(0)[1]]
    table = np.empty((len(lines), len(names)))
    for i, (number, row) in enumerate(lines):
        if len(row) != len(names):
            raise ValueError(f"{argument} {short(path)!r}: row {number} has {len(row)} cells; allowed: {len(names)}.")
        for j, cell in enumerate(row):
            try:
                table[i, j] = float(cell)
            except ValueError:
                text = f"row {number}, column {names[j]!r} is {short(cell)!r}; allowed: numbers."
                raise ValueError(f"{argument} {short(path)!r}: {text}") from None
    return {name: table[:, j] for j, name in enumerate(names) if not name.endswith("__")}
