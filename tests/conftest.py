"""What several test files share: small configurations, and one thread unless a test asks for more."""

import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

CIRCLE = """
[mesh]
kind = "circle"
cells = 64
[attention]
beta = 12.0
value = [[1.0, 0.0], [0.0, -0.6]]
[initial]
kind = "polynomial"
linear = [0.4, 0.3]
[time]
end = 4.0
saves = 4
[output]
figures = false
"""

JOINT = """
[mesh]
kind = "circle"
cells = 32
[labels]
kind = "circle"
count = 4
[kernel]
kind = "toeplitz"
cosines = [[1, 1.0]]
beta = 2.0
[initial]
kind = "uniform"
perturbation = 0.2
seed = 5
[time]
end = 6.0
saves = 3
[output]
figures = false
"""


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Numba's number of threads belongs to the process: leave it as one for the next test."""
    from tokensphere.pde.threads import set_threads

    set_threads(1)
    yield
    set_threads(1)


@pytest.fixture
def circle_tables() -> dict[str, Any]:
    """The raw tables of a small run on the circle."""
    return tomllib.loads(CIRCLE)


@pytest.fixture
def write_config(tmp_path: Path) -> Callable[..., Path]:
    """Writes a small configuration ("circle" or "joint", or a text) and returns its path."""

    def write(text: str = "circle", name: str = "small") -> Path:
        path = tmp_path / f"{name}.toml"
        path.write_text({"circle": CIRCLE, "joint": JOINT}.get(text, text), encoding="utf-8")
        return path

    return write
