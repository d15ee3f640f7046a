"""What the programs of the gallery share: the number that each asserts, and a main that draws and prints it."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tokensphere import plots


@dataclass(frozen=True)
class Check:
    """A measured value beside the closed form it must meet within ``tolerance``; ``source`` names the theory."""

    what: str
    value: float
    expected: float
    tolerance: float
    source: str

    @property
    def holds(self) -> bool:
        """Whether the value lies within the tolerance."""
        return abs(self.value - self.expected) <= self.tolerance

    def __str__(self) -> str:
        verdict = "holds" if self.holds else "FAILS"
        target = f"{self.expected:.5g} ± {self.tolerance:.2g}"
        return f"{self.what}: {self.value:.5g}, expected {target} ({self.source}): {verdict}"


def main(
    name: str,
    compute: Callable[[bool], Any],
    draw: Callable[[Any], Figure | Axes],
    check: Callable[[Any], Check],
) -> None:
    """Run a program of the gallery: ``python NAME.py [--quick]`` writes NAME.png beside it and prints its number."""
    result = compute("--quick" in sys.argv)
    path = plots.save(draw(result), Path(f"{name}.png"))
    found = check(result)
    print(f"{found}\nsee {path}")
    sys.exit(0 if found.holds else 1)
