"""Every program of the gallery computes, draws, and meets its number at the quick level."""

import importlib
import sys
from pathlib import Path

import pytest

from tokensphere import plots

FOLDER = Path(__file__).parent.parent / "examples" / "gallery"
NAMES = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem not in ("common", "remake"))


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))


@pytest.mark.parametrize("name", NAMES)
def test_program(name: str, tmp_path: Path) -> None:
    module = importlib.import_module(name)
    result = module.compute(True)
    found = module.check(result)
    assert found.holds, str(found)
    if name in ("plateau", "toeplitz", "great_circle_limit"):
        assert plots.save(module.draw(result), tmp_path / "figure.png").stat().st_size > 10_000
    else:
        module.draw(result)


def test_the_page_shows_every_program() -> None:
    remake = importlib.import_module("remake")
    assert sorted((*remake.FIRST, *remake.SECOND)) == NAMES
    assert "common" in sys.modules
