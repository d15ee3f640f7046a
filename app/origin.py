"""Where a result comes from: versions, platform, threads, seed and, when known, the commit."""

import platform
import subprocess
from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = (
    "tokensphere",
    "numpy",
    "scipy",
    "healpy",
    "fenics-basix",
    "ducc0",
    "numba",
    "POT",
    "h5py",
    "h5netcdf",
    "xarray",
)


def origin(threads: int, seed: int | None = None) -> dict[str, Any]:
    """A JSON-ready record; it holds no clock time, so that equal runs carry equal records."""
    return {
        "versions": {"python": platform.python_version(), **{name: _version(name) for name in PACKAGES}},
        "platform": platform.platform(),
        "machine": platform.machine(),
        "threads": threads,
        "seed": seed,
        "commit": commit(),
    }


def in_words(record: Mapping[str, Any]) -> str:
    """An origin record on one line."""
    commit = "" if record["commit"] is None else f", commit {record['commit']}"
    return (
        f"Written by tokensphere {record['versions']['tokensphere']}{commit}, Python {record['versions']['python']}, "
        f"{record['platform']}, {record['threads']} threads, seed {record['seed']}"
    )


@cache
def commit() -> str | None:
    """The commit of the source tree this package runs from (with + when files differ), None if it is installed."""
    root = Path(__file__).resolve().parent.parent
    if not (root / ".git").exists() or not (root / "pyproject.toml").exists():
        return None
    found = _git(root, "status", "--porcelain=2", "--branch", "--untracked-files=no")
    return found and commit_in(found)


def commit_in(status: str) -> str | None:
    """The commit in what `git status --porcelain=2 --branch` says, with + when files differ; None before the first."""
    lines = status.splitlines()
    head = next((line.split()[2] for line in lines if line.startswith("# branch.oid ")), "(initial)")
    changed = any(not line.startswith("#") for line in lines)
    return None if head == "(initial)" else head + "+" * changed


def _git(root: Path, *arguments: str) -> str | None:
    try:
        result = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, timeout=5)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return result.stdout.strip() if result.returncode == 0 else None


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
