"""What is installed: one import name, all packages, and a licence."""

import subprocess
import sys
import zipfile
from importlib.metadata import version
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy of the source as it is."""
    if int(version("setuptools").split(".")[0]) < 77:
        pytest.skip("building the wheel here needs setuptools 77, which the test extra installs")
    import shutil

    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for name in ("app", "meshes", "pde", "validation", "pyproject.toml", "README.md", "LICENSE"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, source / name)
    build = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        str(out),
        str(source),
    ]
    done = subprocess.run(build, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return next(out.glob("*.whl"))


def test_the_wheel_holds_one_import_name_and_every_module(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names if not name.split("/")[0].endswith(".dist-info")} == {"tokensphere"}
    folders = {
        "app": "tokensphere",
        "meshes": "tokensphere/meshes",
        "pde": "tokensphere/pde",
        "validation": "tokensphere/validation",
    }
    for folder, target in folders.items():
        for path in (ROOT / folder).rglob("*.py"):
            assert f"{target}/{path.relative_to(ROOT / folder).as_posix()}" in names
    assert "tokensphere/py.typed" in names


def test_the_wheel_carries_licence_and_entry_point(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    metadata = archive.read(next(name for name in archive.namelist() if name.endswith("METADATA"))).decode()
    assert "License-Expression: GPL-2.0-or-later" in metadata
    entry = archive.read(next(name for name in archive.namelist() if name.endswith("entry_points.txt"))).decode()
    assert "tokensphere = tokensphere.cli:main" in entry


def test_licence_and_version_are_told_the_same_everywhere() -> None:
    assert "GNU GENERAL PUBLIC LICENSE" in (ROOT / "LICENSE").read_text(encoding="utf-8")
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert "license: GPL-2.0-or-later" in citation
    assert f"version: {version('tokensphere')}" in citation
    assert version("tokensphere") in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
