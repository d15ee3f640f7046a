"""tokensphere: the mean-field transformer equation solved for a density on the sphere.

Names are loaded when they are first used, so that ``import tokensphere`` is quick.
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tokensphere import plots as plots
    from tokensphere.meshes import labels as labels
    from tokensphere.meshes.circle import circle as circle
    from tokensphere.meshes.errors import InputError as InputError
    from tokensphere.meshes.healpix import healpix as healpix
    from tokensphere.meshes.mesh import Mesh as Mesh
    from tokensphere.pde import densities as densities
    from tokensphere.pde import kernels as kernels
    from tokensphere.pde.attention import Attention as Attention
    from tokensphere.pde.errors import NumericalError as NumericalError
    from tokensphere.pde.integral import AttentionIntegral as AttentionIntegral
    from tokensphere.pde.integral import attention_mean as attention_mean
    from tokensphere.pde.solution import Solution as Solution
    from tokensphere.pde.threads import set_threads as set_threads
    from tokensphere.report import load_run as load_run
    from tokensphere.report import write_report as write_report
    from tokensphere.reprs import check_hypotheses as check_hypotheses
    from tokensphere.solving import solve as solve
    from tokensphere.solving_joint import solve_joint as solve_joint
    from tokensphere.validation.projection import Projection as Projection
    from tokensphere.validation.wasserstein import wasserstein2_to_limit as wasserstein2_to_limit

# Threads that spin while they wait cost a factor of ten as soon as another program wants a processor.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

# Public name → (module, name in it); a None names the module itself.
_PUBLIC: dict[str, tuple[str, str | None]] = {
    "Attention": ("tokensphere.pde.attention", "Attention"),
    "AttentionIntegral": ("tokensphere.pde.integral", "AttentionIntegral"),
    "InputError": ("tokensphere.meshes.errors", "InputError"),
    "Mesh": ("tokensphere.meshes.mesh", "Mesh"),
    "NumericalError": ("tokensphere.pde.errors", "NumericalError"),
    "Projection": ("tokensphere.validation.projection", "Projection"),
    "Solution": ("tokensphere.pde.solution", "Solution"),
    "attention_mean": ("tokensphere.pde.integral", "attention_mean"),
    "check_hypotheses": ("tokensphere.reprs", "check_hypotheses"),
    "circle": ("tokensphere.meshes.circle", "circle"),
    "densities": ("tokensphere.pde.densities", None),
    "healpix": ("tokensphere.meshes.healpix", "healpix"),
    "kernels": ("tokensphere.pde.kernels", None),
    "labels": ("tokensphere.meshes.labels", None),
    "load_run": ("tokensphere.report", "load_run"),
    "plots": ("tokensphere.plots", None),
    "set_threads": ("tokensphere.pde.threads", "set_threads"),
    "solve": ("tokensphere.solving", "solve"),
    "solve_joint": ("tokensphere.solving_joint", "solve_joint"),
    "write_report": ("tokensphere.report", "write_report"),
    "wasserstein2_to_limit": ("tokensphere.validation.wasserstein", "wasserstein2_to_limit"),
}

__all__ = sorted(_PUBLIC)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return _version()
    if name not in _PUBLIC:
        raise AttributeError(f"module 'tokensphere' has no attribute {name!r}")
    module, attribute = _PUBLIC[name]
    loaded = import_module(module)
    found = loaded if attribute is None else getattr(loaded, attribute)
    globals()[name] = found
    return found


def _version() -> str:
    # Imported here: the command line's signal handlers stand only once this module has been read.
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("tokensphere")
    except PackageNotFoundError:  # a checkout that was never installed
        return "0+unknown"


def __dir__() -> list[str]:
    return sorted([*globals(), *_PUBLIC])
