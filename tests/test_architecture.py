"""The layout as a contract: imports run one way, packages are the folders, and importing is quick."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = {
    "app": "tokensphere",
    "validation": "tokensphere.validation",
    "pde": "tokensphere.pde",
    "meshes": "tokensphere.meshes",
}
ORDER = ["meshes", "pde", "validation", "app"]  # each may import itself and what stands before it


def sources(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


def layer(module: str) -> str | None:
    """The folder that a module of tokensphere belongs to."""
    if module != "tokensphere" and not module.startswith("tokensphere."):
        return None
    return next((folder for folder in ORDER[:3] if re.match(rf"tokensphere\.{folder}(\.|$)", module)), "app")


def imported(path: Path) -> list[str]:
    """Every module named in an import, inside functions and TYPE_CHECKING blocks too."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            module = node.module or ""
            found += [f"{module}.{alias.name}" for alias in node.names] if module == "tokensphere" else [module]
    return found


@pytest.mark.parametrize("folder", ORDER)
def test_imports_run_one_way(folder: str) -> None:
    allowed = {None, *ORDER[: ORDER.index(folder) + 1]}
    wrong = [
        f"{path.relative_to(ROOT)} imports {module}"
        for path in sources(folder)
        for module in imported(path)
        if layer(module) not in allowed
    ]
    assert wrong == []


def test_the_particle_oracle_shares_no_flux_code() -> None:
    flux = {f"tokensphere.pde.{name}" for name in ("flux", "transport_kernels", "stepping", "march")}
    for name in ("lagrangian", "particles", "particle_fields", "integrators", "sampling"):
        path = ROOT / "validation" / f"{name}.py"
        assert not set(imported(path)) & flux, path


def test_libraries_do_not_print() -> None:
    for folder in ORDER:
        for path in sources(folder):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
            assert not [node.lineno for node in calls if node.func.id == "print"], path


def packages() -> set[str]:
    """Package names that the folders call for: every folder with an __init__.py."""
    found = set()
    for folder, name in FOLDERS.items():
        for init in (ROOT / folder).rglob("__init__.py"):
            parts = init.parent.relative_to(ROOT / folder).parts
            found.add(".".join([name, *parts]))
    return found


def test_every_folder_is_listed_as_a_package_and_nothing_else() -> None:
    setuptools = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    assert set(setuptools["packages"]) == packages()
    for name, folder in setuptools["package-dir"].items():
        assert (ROOT / folder / "__init__.py").exists(), name
    assert set(setuptools["package-dir"]) == packages()


def test_importing_is_quick_and_loads_nothing_heavy() -> None:
    program = (
        "import sys, time; start = time.process_time(); import tokensphere; spent = time.process_time() - start;"
        "names = ('numpy', 'numba', 'healpy', 'ot', 'matplotlib', 'xarray', 'pydantic');"
        "heavy = [name for name in names if name in sys.modules];"
        "print(spent, heavy)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    spent, heavy = done.stdout.split(maxsplit=1)
    assert float(spent) < 0.5
    assert heavy.strip() == "[]"


def test_public_names_of_the_front_door_exist() -> None:
    import tokensphere as ts

    for name in (
        "healpix",
        "circle",
        "Attention",
        "densities",
        "attention_mean",
        "AttentionIntegral",
        "solve",
        "Projection",
        "wasserstein2_to_limit",
        "check_hypotheses",
        "labels",
        "kernels",
        "solve_joint",
    ):
        assert getattr(ts, name) is not None
    with pytest.raises(AttributeError, match="no attribute"):
        _ = ts.healpx
