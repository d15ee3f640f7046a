"""From the tables of a configuration to the objects they name; here, once, strings become functions."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tokensphere.config.base import Matrix
from tokensphere.config.initial import InitialTable
from tokensphere.config.joint import KernelTable, LabelsTable
from tokensphere.config.tables import AttentionTable, MeshTable
from tokensphere.meshes.errors import InputError
from tokensphere.meshes.labels import Labels, circle, finite, interval
from tokensphere.meshes.mesh import Mesh
from tokensphere.pde import densities
from tokensphere.pde.attention import Attention

if TYPE_CHECKING:
    from tokensphere.pde.kernels import Kernel

Array = NDArray[np.float64]


def build_mesh(table: MeshTable) -> Mesh:
    """The mesh of [mesh]."""
    from tokensphere.meshes.circle import circle as circle_mesh
    from tokensphere.meshes.healpix import healpix

    return healpix(table.nside) if table.kind == "healpix" else circle_mesh(table.cells)


def build_attention(table: AttentionTable, dimension: int) -> Attention:
    """The attention head of [attention]; "identity" is as large as it has to be.

    Raises SingularError, an InputError, where B = QᵀK is singular.
    """
    query, key, value = (matrix_of(entries, dimension) for entries in (table.query, table.key, table.value))
    return Attention(query, key, value, table.beta, table.normalised)


def build_labels(table: LabelsTable) -> Labels:
    """The label space of [labels]."""
    if table.kind == "finite":
        return finite(table.weights)
    return circle(table.count) if table.kind == "circle" else interval(table.count)


def build_kernel(table: KernelTable, dimension: int) -> "Kernel":
    """The kernel of [kernel] with its content profile."""
    from tokensphere.pde import kernels

    profile: Any = kernels.Linear() if table.beta is None else kernels.Exponential(table.beta, table.factor)
    match table.kind:
        case "usa":
            return kernels.usa(profile)
        case "rope":
            return kernels.rope(table.frequency, profile)
        case "generalised_rope":
            generators = [matrix_of(entries, dimension) for entries in table.generators]
            return kernels.generalised_rope(profile, generators=generators)
        case "prefix":
            return kernels.prefix(np.array([matrix_of(entries, dimension) for entries in table.matrices]), profile)
        case "distance_bias":
            return kernels.distance_bias(table.length, profile)
        case "toeplitz":
            return kernels.toeplitz(profile, cosines=_cosines(table.cosines))


def build_initial(table: InitialTable, mesh: Mesh) -> Array:
    """The density (cells,) of [initial]: cell averages per unit area, nested order, mass 1.

    Raises InputError for a file that cannot be used or a density that is not finite, non-negative and somewhere
    positive.
    """
    match table.kind:
        case "mixture":
            return densities.mixture(mesh, [(part.weight, _simple(part, mesh)) for part in table.components])
        case "healpix_map":
            return _from_map(Path(table.path), table.order, mesh)
        case "particles":
            positions, weights = read_tokens(Path(table.path))
            return densities.from_particles(mesh, positions, weights, table.concentration)
        case _:
            return _simple(table, mesh)


def build_joint_initial(table: InitialTable, mesh: Mesh, labels: Labels) -> Array:
    """The product start (labels, cells) of slices that integrate to 1, each times 1 + perturbation·⟨a_ξ, x⟩ where the
    a_ξ are unit vectors drawn independently from `seed`: symmetric data would never choose a direction."""
    slices = np.tile(build_initial(table, mesh), (labels.count, 1))
    if table.perturbation == 0:
        return slices
    directions = np.random.default_rng(table.seed).standard_normal((labels.count, mesh.dimension))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    slices *= 1 + table.perturbation * directions @ mesh.centers.T
    return np.asarray(slices / (slices @ mesh.areas)[:, None])


def matrix_of(entries: Matrix, dimension: int) -> Array:
    """A matrix from its rows, or the identity of that dimension."""
    return np.eye(dimension) if entries == "identity" else np.array(entries, dtype=np.float64)


def read_tokens(path: Path) -> tuple[Array, Array | None]:
    """Positions (n, d) of the first time in an .npz file, and the weights (n,) where it has them."""
    try:
        with np.load(path, allow_pickle=False) as file:
            if isinstance(file, np.ndarray):
                raise ValueError("it is a single array")
            positions = np.asarray(file["positions"], dtype=np.float64)
            weights = np.asarray(file["weights"], dtype=np.float64) if "weights" in file else None
    except FileNotFoundError:
        raise InputError(f"{path} does not exist; give an .npz file with an array named positions.") from None
    except (OSError, KeyError, ValueError, TypeError, EOFError, AttributeError) as error:
        raise InputError(
            f"{path} cannot be used as tokens ({_brief(error)}); give an .npz file with an array named "
            "positions, (n, d) or (times, n, d)."
        ) from None
    return (positions[0] if positions.ndim == 3 and len(positions) else positions), weights


def _simple(table: Any, mesh: Mesh) -> Array:
    match table.kind:
        case "uniform":
            return densities.uniform(mesh)
        case "polynomial":
            quadratic = None if table.quadratic is None else matrix_of(table.quadratic, mesh.dimension)
            return densities.polynomial(mesh, table.constant, table.linear, quadratic)
        case _:
            return densities.von_mises_fisher(mesh, table.mean, table.concentration)


def _from_map(path: Path, order: str | None, mesh: Mesh) -> Array:
    from tokensphere.fits import read_map

    return densities.from_healpix_map(mesh, read_map(path, order), "nested")


def _cosines(pairs: Sequence[Sequence[float]]) -> list[tuple[int, float]]:
    if any(k != int(k) or k < 0 for k, _ in pairs):
        raise InputError(
            "kernel.cosines has a degree that is not a whole number of at least 0; give pairs "
            "[k, coefficient] such as [[1, 1.0]]."
        )
    return [(int(k), coefficient) for k, coefficient in pairs]


def _brief(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text if len(text) < 80 else text[:77] + "..."
