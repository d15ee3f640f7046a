"""Who measured: the processor, the memory and the versions that a table of timings means nothing without."""

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = ("numpy", "scipy", "numba", "ducc0", "torch")


def describe() -> str:
    """One paragraph: processor, cores, memory, Python and package versions (an absent package is left out)."""
    return (
        f"{_processor()}, {os.cpu_count()} cores, {_memory():.0f} GB; {platform.system()} {platform.machine()}, "
        f"Python {platform.python_version()}, {', '.join(_versions())}"
    )


def _processor() -> str:
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    fields = dict(line.split(":", 1) for line in lines if ":" in line)
    names = {key.strip(): value.strip() for key, value in fields.items()}
    name = names.get("model name", platform.processor() or platform.machine())
    return f"{name} (family {names['cpu family']}, model {names['model']})" if "cpu family" in names else name


def _memory() -> float:
    return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")) / 1e9


def _versions() -> list[str]:
    found = []
    for package in PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return found
