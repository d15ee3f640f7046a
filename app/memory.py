"""Memory that a run will need, predicted before it is taken."""

import os

from tokensphere.config.tables import Config
from tokensphere.pde.errors import PredictedMemoryError

BASE = 350e6
"""Bytes of the interpreter with its libraries and compiled kernels."""

MESH_BYTES = {"healpix": 2000.0, "circle": 900.0}
"""Bytes a cell for mesh, quadrature and the attention integral's plan (measured at nside 32 to 128, rounded up)."""

SLICE_BYTES = {"healpix": 450.0, "circle": 250.0}
"""Bytes a cell for each label: density, stages, speeds at the face points and the four fields kept in memory."""


def predicted_memory(config: Config) -> float:
    """Bytes that a run of this configuration takes at its peak, to a factor of about 1.5."""
    kind = config.mesh.kind
    cells = 12 * config.mesh.nside**2 if config.mesh.kind == "healpix" else config.mesh.cells
    return BASE + cells * (MESH_BYTES[kind] + _labels(config) * SLICE_BYTES[kind])


def available_memory() -> float:
    """Bytes this process may still take: the machine's, or those of its control group if they are fewer."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            free = next(float(line.split()[1]) * 1024 for line in file if line.startswith("MemAvailable"))
    except (OSError, StopIteration):
        return _physical()
    return min(free, _control_group())


def check_memory(config: Config, available: float | None = None) -> None:
    """Raise PredictedMemoryError where a run needs more than is there, with what to do instead."""
    need, have = predicted_memory(config), available_memory() if available is None else available
    if need > have:
        key = "mesh.nside" if config.mesh.kind == "healpix" else "mesh.cells"
        remedy = f"lower {key}" + (" or use fewer labels" if config.joint else "")
        raise PredictedMemoryError(
            f"the run would need about {need / 1e9:.2g} GB of memory, but {have / 1e9:.2g} GB are available; {remedy}, "
            "or use a larger machine."
        )


def _labels(config: Config) -> int:
    if config.labels is None:
        return 1
    return len(config.labels.weights) if config.labels.kind == "finite" else config.labels.count


def _control_group() -> float:
    try:
        with open("/sys/fs/cgroup/memory.max", encoding="ascii") as limit:
            most = limit.read().strip()
        with open("/sys/fs/cgroup/memory.current", encoding="ascii") as current:
            used = float(current.read())
    except OSError:
        return float("inf")
    return float("inf") if most == "max" else float(most) - used


def _physical() -> float:
    try:
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (ValueError, OSError, AttributeError):
        return float("inf")
