"""The particle runs of the second document: n ∈ {64, 128, 256} tokens to τ = 20 under its six families of kernels.

The time unit is the factor in the profile: here g = e^{βs}/β unless another is given (theory §2.1; the document's
"τ=20" is ambiguous without it).
"""

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tokensphere.meshes import labels as label_spaces
from tokensphere.meshes.errors import InputError
from tokensphere.meshes.labels import Labels
from tokensphere.pde.kernels import Kernel, distance_bias, generalised_rope, prefix, rope, toeplitz, usa
from tokensphere.pde.profiles import Exponential, Profile
from tokensphere.validation.integrators import on_sphere
from tokensphere.validation.particles import advance_labelled

Array = NDArray[np.float64]

COUNTS = (64, 128, 256)
END = 20.0
FAMILIES = ("usa", "rope", "generalised_rope", "prefix", "toeplitz", "distance_bias")
PREFIXES = 8


@dataclass(frozen=True, eq=False)
class DocumentRun:
    """End of one run: tokens (n, d), their labels, and what tells collapse from spread.

    mean_length: |mean x|, 1 for a Dirac and 0 for a great circle under a uniform law. turned_length: the same for
    u = Q(ξ)x, 1 when the u's have collapsed. second_moments: eigenvalues of Σwxxᵀ, ascending. energy: ½∬h dμdμ.
    speed: largest |dx/dt| at the end; a metastable run still moves when τ = 20 is over. time_unit: the profile's name.
    """

    family: str
    tokens: Array
    labels: Labels
    mean_length: float
    turned_length: float
    second_moments: Array
    energy: float
    speed: float
    time_unit: str

    def as_row(self) -> dict[str, float | str]:
        """The run as one row of a table."""
        return {
            "family": self.family,
            "tokens": len(self.tokens),
            "mean": self.mean_length,
            "turned mean": self.turned_length,
            "largest second moment": float(self.second_moments[-1]),
            "energy": self.energy,
            "speed": self.speed,
            "time unit": self.time_unit,
        }


def family(name: str, count: int, profile: Profile, generator: Generator) -> tuple[Kernel, Labels]:
    """Kernel and labels of a family for `count` tokens, one label each (prefixes: PREFIXES random O(p), in turn).

    Raises InputError for an unknown family.
    """
    circle = label_spaces.circle(count)
    if name == "usa":
        return usa(profile), circle
    if name == "rope":
        return rope(1.0, profile), circle
    if name == "generalised_rope":
        first, second = np.zeros((3, 3)), np.zeros((3, 3))
        first[1, 0], first[0, 1], second[2, 1], second[1, 2] = 1, -1, 1, -1
        return generalised_rope(profile, generators=[first, 2 * second]), circle
    if name == "prefix":
        matrices = np.linalg.qr(generator.normal(size=(PREFIXES, 3, 3)))[0]
        return prefix(matrices, profile), label_spaces.finite(np.ones(PREFIXES))
    if name == "toeplitz":
        return toeplitz(profile, cosines=[(1, 1.0)]), circle
    if name == "distance_bias":
        return distance_bias(0.5, profile), label_spaces.interval(count)
    raise InputError(f"the family {name!r} is unknown; the families are {', '.join(FAMILIES)}.")


def document_run(
    name: str,
    count: int,
    generator: Generator,
    *,
    profile: Profile | None = None,
    end: float = END,
    tolerance: float = 1e-7,
) -> DocumentRun:
    """One run from iid uniform tokens on S² to t = `end`; the profile defaults to e^{βs}/β with β = 1."""
    profile = Exponential(1.0, "1/beta") if profile is None else profile
    kernel, labels = family(name, count, profile, generator)
    indices = np.arange(count) % labels.count
    start = on_sphere(generator.normal(size=(count, 3)))
    run = advance_labelled(kernel, labels, indices, start, [0.0, end, 1.001 * end], tolerance=tolerance)
    tokens, later = run.positions[1:]
    gauge = kernel.gauge(labels, 3)
    turned = tokens if gauge is None else np.einsum("nij,nj->ni", gauge[indices], tokens)
    strength = profile.value(turned @ turned.T)
    if kernel.is_mixing:
        strength = strength * kernel.mixing(labels)[indices][:, indices]
    return DocumentRun(
        name,
        tokens,
        labels,
        float(np.linalg.norm(tokens.mean(axis=0))),
        float(np.linalg.norm(turned.mean(axis=0))),
        np.asarray(np.linalg.eigvalsh(tokens.T @ tokens / count), dtype=np.float64),
        float(strength.mean() / 2),
        float(np.linalg.norm(later - tokens, axis=1).max() / (0.001 * end)),
        profile.name,
    )
