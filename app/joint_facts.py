"""The part of summary.json that says what became of a joint law."""

from typing import Any

from tokensphere.folder import RunFolder
from tokensphere.pde.kernels import Kernel
from tokensphere.store import read_saves
from tokensphere.task import Task


def joint_facts(task: Task, folder: RunFolder) -> dict[str, Any] | None:
    """Verdict on the last save, the spectral dichotomy of the kernel and how narrow the slices are; None for others."""
    kernel = task.model
    if task.labels is None or not isinstance(kernel, Kernel):
        return None
    from tokensphere.validation.dichotomy import dichotomy
    from tokensphere.validation.diracization import diracization, outcome

    density = read_saves(folder.solution).densities[-1]
    mesh, labels = task.mesh, task.labels
    judged = outcome(mesh, labels, kernel, density)
    known = dichotomy(labels, kernel, mesh.dimension)
    slices = diracization(mesh, labels, kernel, density)
    return {
        "verdict": judged.verdict,
        "energy": judged.energy,
        "maximal_energy": judged.maximal,
        "content_mean_length": judged.mean_length,
        "shape": judged.shape.name,
        "time_unit": kernel.profile.name,
        "dichotomy": {"verdict": known.verdict, "reason": known.reason, "coefficients": known.coefficients},
        "widest_slice": float(slices.widths.max()),
        "largest_gap_to_argmax": float(slices.gaps.max()),
        "points": slices.points,
    }
