"""Figures as functions of arrays; each returns Axes (whole pages: a Figure) and touches no global state.

Maps of the sphere: ``density_map``, ``sphere_figure``, ``time_series_figure``; the circle: ``circle_density``,
``circle_figure``; curves of a run: ``wasserstein_curve``, ``minimum_density``, ``mass_defect``, ``energy_curve``,
``mean_vector``, ``terminal_curve``; studies: ``phase_map``, ``against_beta``, ``label_curve``; motion:
``write_animation``; and ``save`` for any of them.
"""

from tokensphere.decay import Decay, fit_decay
from tokensphere.plots.animation import write_animation
from tokensphere.plots.canvas import dress, new_figure, save
from tokensphere.plots.circle import circle_density, circle_figure
from tokensphere.plots.colours import CYCLE, ColourScale, colour_scale
from tokensphere.plots.curves import (
    energy_curve,
    lipschitz_curve,
    mass_defect,
    mean_vector,
    minimum_density,
    moment_curve,
    spread_curve,
    step_sizes,
    terminal_curve,
    wasserstein_curve,
)
from tokensphere.plots.pages import sphere_figure, time_series_figure
from tokensphere.plots.phase_diagram import against_beta, label_curve, phase_map
from tokensphere.plots.sphere import Raster, colour_bar, density_map, rasterise
from tokensphere.plots.views import Mollweide, Orthographic, View

__all__ = [
    "CYCLE",
    "ColourScale",
    "Decay",
    "Mollweide",
    "Orthographic",
    "Raster",
    "View",
    "against_beta",
    "circle_density",
    "circle_figure",
    "colour_bar",
    "colour_scale",
    "density_map",
    "dress",
    "energy_curve",
    "fit_decay",
    "label_curve",
    "lipschitz_curve",
    "mass_defect",
    "mean_vector",
    "minimum_density",
    "moment_curve",
    "new_figure",
    "phase_map",
    "rasterise",
    "save",
    "sphere_figure",
    "spread_curve",
    "step_sizes",
    "terminal_curve",
    "time_series_figure",
    "wasserstein_curve",
    "write_animation",
]
