"""Several devices: they share the rows of particles, each those that it holds; or each takes a run of many."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from queue import SimpleQueue

import jax
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

ROWS, COLUMNS, WHOLE = P("rows"), P(None, "rows"), P()


def check_count(devices: int) -> None:
    """Refuse more devices than there are.

    Raises:
        ValueError: there are not so many.
    """
    if devices not in range(1, jax.device_count() + 1):
        raise ValueError(
            f"devices = {devices!r} is out of range; allowed: 1 to {jax.device_count()}, all that there are."
        )


def mesh_of(devices: int) -> Mesh | None:
    """Return the mesh of so many devices; None for one.

    Raises:
        ValueError: there are not so many.
    """
    check_count(devices)
    return None if devices == 1 else jax.make_mesh((devices,), ("rows",), axis_types=(jax.sharding.AxisType.Auto,))


def shared(mesh: Mesh | None, of, specs: tuple, *arguments):
    """Return of(*arguments), rows of results on the device of these rows.

    Args:
        mesh: the devices; None for one.
        of: a function whose results are row by row as the arguments with `ROWS` are.
        specs: for each argument, how devices share it: `ROWS`, `COLUMNS`, or `WHOLE` for all of it on each.
        arguments: of the function.
    """
    if mesh is None:
        return of(*arguments)
    return jax.shard_map(of, mesh=mesh, in_specs=specs, out_specs=ROWS, check_vma=False)(*arguments)


def placed(mesh: Mesh | None, array):
    """Return an array whose rows are on the devices that share them. It may be traced."""
    return array if mesh is None else jax.lax.with_sharding_constraint(array, NamedSharding(mesh, ROWS))


class Pool:
    """Devices that take runs in turn, each the next one that comes.

    Args:
        devices: how many; None for all GPUs, or for one on a CPU.

    Raises:
        ValueError: there are not so many.
    """

    def __init__(self, devices: int | None):
        if devices is None:
            devices = 1 if jax.default_backend() == "cpu" else jax.device_count()
        check_count(devices)
        self.devices, self._free = jax.devices()[:devices], SimpleQueue()

    def threads(self, usual: int) -> int:
        """Return how many threads keep them busy, where one device has `usual` ones: at least that, as many each."""
        return -(-max(usual, len(self.devices)) // len(self.devices)) * len(self.devices)

    def open(self, threads: int) -> None:
        """Give each of so many threads a device, in turn."""
        for thread in range(threads):
            self._free.put(self.devices[thread % len(self.devices)])

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Compute on a device that is free, on this thread. With one device that is where it computes anyway."""
        if len(self.devices) == 1:
            yield
            return
        device = self._free.get()
        try:
            with jax.default_device(device):
                yield
        finally:
            self._free.put(device)


GPUS = "/proc/driver/nvidia/gpus"


def pin(place: int) -> None:
    """Have this process compute on one device: the one at `place`, counted round the devices there are.

    Of several GPUs of NVIDIA the process then sees one alone, if JAX has not looked for devices yet: each process would
    reserve memory on all that it sees.
    """
    there = [one for one in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if one]
    if not there and os.path.isdir(GPUS):
        there = [str(one) for one in range(len(os.listdir(GPUS)))]
    if len(there) > 1:
        os.environ["CUDA_VISIBLE_DEVICES"] = there[place % len(there)]
    if jax.local_device_count() > 1:
        jax.config.update("jax_default_device", jax.local_devices()[place % jax.local_device_count()])
