"""Theorem 1 bounds the plateau by √(log(β+1)/β); the plateau itself falls like β^(−1/2), without the logarithm."""

import numpy as np
import plateau
from common import Check, main
from matplotlib.axes import Axes

from tokensphere import plots


def levels(result: plateau.Result) -> np.ndarray:
    """The plateau of W2 for each β, from the mass that has crossed."""
    return 2 * np.sqrt(np.abs(result.shifts) / np.array(result.betas))


def draw(result: plateau.Result) -> Axes:
    """Plateaus against β, the formula, and the theorem's envelope through the first of them."""
    betas = np.geomspace(min(result.betas), max(result.betas), 60)
    envelope = np.sqrt(np.log(betas + 1) / betas)
    lines = {
        "2√(.0398/β)": (betas, 2 * np.sqrt(0.0398 / betas)),
        "∝ √(log(β+1)/β)": (betas, envelope / envelope[0] * levels(result)[0]),
    }
    return plots.against_beta(
        result.betas,
        {"measured": levels(result)},
        lines=lines,
        y_label="plateau of W₂",
        title="The plateau and Theorem 1",
    )


def check(result: plateau.Result) -> Check:
    """Slope of log W2 against log β."""
    slope = np.polyfit(np.log(result.betas), np.log(levels(result)), 1)[0]
    return Check("slope of the plateau", float(slope), -0.5, 0.06, "theory §1.4: W2 ~ β^(−1/2)")


compute = plateau.compute

if __name__ == "__main__":
    main("envelope", compute, draw, check)
