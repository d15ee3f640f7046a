"""Figures: the maps are the maps they claim to be, nothing is cut off or blank, and no global state is touched."""

import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread
from numpy.typing import NDArray
from PIL import Image

from tokensphere import plots
from tokensphere.figures import chosen_saves, write_run_figures
from tokensphere.meshes.circle import circle
from tokensphere.meshes.errors import InputError
from tokensphere.meshes.healpix import healpix
from tokensphere.plots.canvas import blank_figure, column_figure, pixels, place
from tokensphere.plots.colours import ColourScale, colour_scale
from tokensphere.plots.decades import power_words
from tokensphere.plots.map_image import MapImage
from tokensphere.plots.scale_bar import bar_marks
from tokensphere.plots.sphere import scale_words, view_centres
from tokensphere.plots.views import Mollweide, Orthographic, great_circle, pixel_grid, visible_pieces

Array = NDArray[np.float64]


def random_directions(count: int, seed: int = 1) -> Array:
    vectors = np.random.default_rng(seed).normal(size=(count, 3))
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def angular_gaussian(points: Array, t: float) -> Array:
    """Zero-temperature density from uniform data, B = I, M = diag(1, .3, −.5) or diag(1, −.6): theory §1.3(b)."""
    d = points.shape[1]
    values = np.array([1.0, 0.3, -0.5]) if d == 3 else np.array([1.0, -0.6])
    length = np.linalg.norm(points * np.exp(-t * values), axis=1)
    return np.asarray(np.exp(-t * values.sum()) * length**-d / (4 * np.pi if d == 3 else 2 * np.pi))


@pytest.mark.parametrize(
    "view", [Mollweide(), Mollweide(1.3), Orthographic((0.2, -0.5, 0.7)), Orthographic((0, 0, -1))]
)
def test_view_and_its_inverse_agree(view: plots.View) -> None:
    points = np.concatenate([random_directions(500), np.eye(3), [[0.0, 1e-9, -1.0]]])
    x, y, visible = view.flatten(points)
    back, inside = view.directions(x[visible], y[visible])
    assert np.all(inside[np.hypot(x[visible] / view.half_width, y[visible] / view.half_height) < 0.999])
    # Positions on the limb lose half the digits: the depth is a square root.
    np.testing.assert_allclose(back, points[visible], atol=3e-7)


def test_mollweide_is_equal_area() -> None:
    """Means over the pixels are means over the sphere: of x_i² (1/3) and of z⁴ (1/5)."""
    view = Mollweide()
    vectors, inside = view.directions(*pixel_grid(view, 1000))
    assert inside.mean() == pytest.approx(np.pi / 4, abs=2e-4)
    seen = vectors[inside]
    np.testing.assert_allclose((seen**2).mean(axis=0), 1 / 3, atol=5e-4)
    assert (seen[:, 2] ** 4).mean() == pytest.approx(1 / 5, abs=5e-4)


def test_orthographic_is_seen_from_outside() -> None:
    """From +x1, x2 points right and x3 up; the far pole is hidden."""
    x, y, visible = Orthographic((1.0, 0.0, 0.0)).flatten(
        np.array([[0, 1.0, 0], [0, 0, 1.0], [1.0, 0, 0], [-1.0, 0, 0]])
    )
    np.testing.assert_allclose(np.stack([x, y], axis=1), [[1, 0], [0, 1], [0, 0], [0, 0]], atol=1e-15)
    assert visible.tolist() == [True, True, True, False]
    frame = Orthographic((0.3, 0.4, -0.9)).frame()
    np.testing.assert_allclose(np.linalg.det(frame), 1.0)


def test_lines_are_cut_at_the_seam_and_behind_the_limb() -> None:
    equator = great_circle(np.eye(3)[:, :2], 721)
    pieces = list(visible_pieces(Mollweide(), equator))
    assert max(np.abs(np.diff(piece[:, 0])).max() for piece in pieces) < 0.05
    assert sum(np.ptp(piece[:, 0]) for piece in pieces) == pytest.approx(4 * np.sqrt(2), rel=0.01)
    front = np.concatenate(list(visible_pieces(Orthographic((1.0, 0.0, 0.0)), equator)))
    assert len(front) == pytest.approx(361, abs=2)


@pytest.mark.parametrize("view", [Mollweide(), Orthographic((1.0, 0.35, 0.45))])
def test_each_visible_cell_is_painted_where_its_centre_lies(view: plots.View) -> None:
    mesh = healpix(4)
    raster = plots.rasterise(mesh, view, 600)
    picture = raster.paint(np.arange(mesh.cells))
    x, y, visible = view.flatten(mesh.centers)
    safe = visible & (np.hypot(x / view.half_width, y / view.half_height) < 0.95)
    column = ((x / view.half_width + 1) / 2 * picture.shape[1]).astype(int)
    row = ((y / view.half_height + 1) / 2 * picture.shape[0]).astype(int)
    assert safe.sum() > 60
    np.testing.assert_array_equal(picture[row[safe], column[safe]], np.flatnonzero(safe))
    assert np.isnan(picture[0, 0])


def test_scale_and_its_words_state_what_is_hidden() -> None:
    density = np.array([1e-9, 1e-5, 1.0, 10.0])
    scale = colour_scale(density, decades=4.0)
    assert (scale.low, scale.high, scale.log) == (1e-3, 10.0, True)
    assert "50 % of the sphere is below 1.0e-03" in scale_words(scale, density)
    assert "per steradian, linear" in scale_words(colour_scale(density, log=False), density)
    nearly_uniform = colour_scale(1.0 + 1e-15 * np.arange(4.0))
    assert nearly_uniform.high / nearly_uniform.low == pytest.approx(1.5)


def test_marks_of_the_bar_are_round_values_inside_the_scale() -> None:
    values, words, marks = bar_marks(ColourScale(3.5e-4, 350.0, True))
    assert words == ["10⁻³", "10⁻²", "10⁻¹", "10⁰", "10¹", "10²"]
    np.testing.assert_allclose(np.log10(values), np.arange(-3, 3))
    assert (marks.min(), marks.max()) == (pytest.approx(4e-4), pytest.approx(300.0))
    assert marks.size == 6 + 8 * 5 + 2  # 4 … 9, five whole decades, 2 and 3
    values, words, marks = bar_marks(ColourScale(0.021, 0.19, True))
    assert (len(words), marks.size) == (len(values), 0)
    np.testing.assert_allclose(values / 0.025, np.round(values / 0.025))
    assert np.diff(ColourScale(0.021, 0.19, True).fraction(values)).min() > 0.08
    assert len(values) >= 4
    assert [float(word) for word in words] == pytest.approx(values)
    np.testing.assert_allclose(ColourScale(0.01, 100.0, True).fraction([0.0, 0.1, 1.0, 1e3]), [0.0, 0.25, 0.5, 1.0])


def test_powers_of_ten_are_labelled_as_text() -> None:
    assert [power_words(value) for value in (1e-13, 2e-3, 1.0, 1e10)] == ["10⁻¹³", "2 × 10⁻³", "10⁰", "10¹⁰"]
    t = np.linspace(0.0, 4.0, 9)
    axes = plots.wasserstein_curve(t, np.exp(-t))
    assert axes.yaxis.get_major_formatter().format_ticks([0.01, 1.0]) == ["10⁻²", "10⁰"]
    axes.set_ylim(0.02, 0.05)
    plots.dress(axes)
    assert axes.yaxis.get_minor_formatter().format_ticks([0.02, 0.03]) == ["2 × 10⁻²", "3 × 10⁻²"]


def test_labels_chosen_for_an_axis_stay() -> None:
    axes = plots.against_beta([10, 20, 400], {"runs": [1.8, 3.7, 73.0]})
    assert axes.xaxis.get_major_formatter().format_ticks([10.0, 400.0]) == ["10", "400"]
    assert axes.yaxis.get_major_formatter().format_ticks([2.0, 50.0]) == ["2", "50"]


@pytest.mark.parametrize("scale", [1e-9, 1e-5, 1.0, 123456.0, 3e12])
def test_a_column_of_curves_is_whole_whatever_its_numbers(tmp_path: Path, scale: float) -> None:
    t = np.linspace(0.0, 1000.0, 50)
    figure, (first, second, third) = column_figure(3, 6.6, 7.2)
    plots.energy_curve(t, -scale * np.linspace(1.0, 1.3, 50), first)
    plots.minimum_density(t, scale * np.exp(-0.1 * t), second)
    plots.wasserstein_curve(t, scale * np.exp(-0.001 * t), 0.5 * scale, third, phases=[("plateau", 0.0, 1000.0)])
    assert is_whole(plots.save(figure, tmp_path / "column.png"))
    frames = [axes.get_position() for axes in (first, second, third)]
    assert len({frame.x0 for frame in frames}) == len({round(frame.height, 12) for frame in frames}) == 1


def test_each_pixel_of_the_page_has_the_colour_of_its_cell() -> None:
    figure = blank_figure(2.0, 1.0)
    axes = place(figure, 0.0, 0.0, 2.0, 1.0)
    cells = np.arange(32, dtype=np.int32).reshape(4, 8)
    colours = np.stack([8 * np.arange(32), np.zeros(32), np.zeros(32), np.full(32, 255)], axis=1).astype(np.uint8)
    axes.add_image(MapImage(axes, cells, colours, (2.0, 1.0)))
    axes.set(xlim=(-2.0, 2.0), ylim=(-1.0, 1.0))
    axes.set_axis_off()
    seen = pixels(figure)[::-1, :, 0]
    np.testing.assert_array_equal(seen, 8 * np.repeat(np.repeat(cells, 30, axis=0), 30, axis=1))


def test_limit_set_is_marked_where_it_lies() -> None:
    mesh, axis = healpix(2), np.array([0.6, 0.0, 0.8])
    axes = plots.density_map(mesh, np.ones(mesh.cells), limit_basis=axis[:, None])
    marks = np.array([line.get_xydata()[0] for line in axes.lines if len(line.get_xydata()) == 1])
    x, y, _ = Mollweide().flatten(np.stack([axis, -axis]))
    np.testing.assert_allclose(marks, np.stack([x, y], axis=1))
    front, back = view_centres(axis[:, None])
    assert np.dot(front, axis) > 0.85
    np.testing.assert_allclose(front, -np.array(back))


def test_decay_is_found_and_fitted() -> None:
    t = np.linspace(0.0, 8.0, 200)
    exact = plots.fit_decay(t, 1.3 * np.exp(-0.7 * t))
    assert exact is not None
    assert (exact.rate, exact.prefactor) == (pytest.approx(0.7, rel=1e-9), pytest.approx(1.3, rel=1e-9))
    settling = plots.fit_decay(t, np.hypot(np.exp(-0.7 * t), 0.02))
    assert settling is not None
    assert settling.rate == pytest.approx(0.7, rel=0.03)
    assert settling.end < 5.0
    assert plots.fit_decay(t, np.ones(200)) is None
    assert plots.fit_decay(t, np.exp(-0.7 * t), floor=0.9) is None


def test_curves_carry_the_data_they_are_given() -> None:
    t = np.linspace(0.0, 4.0, 9)
    axes = plots.wasserstein_curve(
        t, np.exp(-t), 0.05, fit=plots.fit_decay(t, np.exp(-t)), phases=[("early", 0.0, 2.0)]
    )
    np.testing.assert_array_equal(axes.lines[0].get_ydata(), np.exp(-t))
    assert axes.get_yscale() == "log"
    assert "rate 1.000" in str([text.get_text() for text in axes.get_legend().get_texts()])
    empty = plots.minimum_density(t, np.where(t < 3, 1e-5, 0.0))
    assert "zero or negative at 3 steps" in empty.get_legend().get_texts()[0].get_text()
    defect = plots.mass_defect(t, 1.0 + 1e-13 * (t > 2))
    assert defect.lines[0].get_ydata().min() == np.finfo(float).eps
    with pytest.raises(InputError, match="circle_density"):
        plots.density_map(circle(16), np.ones(16))
    with pytest.raises(InputError, match="density_map"):
        plots.circle_density(healpix(1), [0.0], [np.ones(12)])


def test_circle_is_centred_on_the_axis_and_keeps_its_values() -> None:
    mesh = circle(64)
    density = angular_gaussian(mesh.centers, 1.0)
    axes = plots.circle_density(mesh, [1.0], [density], limit_basis=[[1.0], [0.0]])
    (steps,) = axes.patches
    values, edges, _ = steps.get_data()
    assert (edges[0], edges[-1]) == (-90.0, 270.0)
    middles = np.radians((edges[1:] + edges[:-1]) / 2)
    expected = angular_gaussian(np.stack([np.cos(middles), np.sin(middles)], axis=1), 1.0)
    np.testing.assert_allclose(values, expected, rtol=1e-12)


def is_whole(path: Path) -> bool:
    """Not blank, and nothing touches the edge of the picture."""
    picture = imread(path)[..., :3]
    edge = np.concatenate([picture[0], picture[-1], picture[:, 0], picture[:, -1]])
    return bool(picture.std() > 0.05 and edge.min() == 1.0)


def fake_records(steps: int = 50) -> dict[str, Array]:
    t = np.linspace(0.0, 3.0, steps)
    a = np.exp(-t)
    names = {"time": t, "mass": 1 + 1e-15 * a, "density_min": 0.08 * a**3, "mean_x": 0.3 * a, "mean_y": 0 * a}
    return names | {"w2_to_limit": np.sqrt(2 * a / (1 + a)), "w2_floor": np.full(steps, 0.05), "energy": np.nan * a}


def test_figures_of_a_sphere_run(tmp_path: Path) -> None:
    mesh, times = healpix(4), np.linspace(0.0, 3.0, 4)
    densities = np.stack([angular_gaussian(mesh.centers, t) for t in times])
    paths = write_run_figures(
        mesh, times, densities, fake_records(), tmp_path / "figures", limit_basis=np.eye(3)[:, :1]
    )
    names = {path.name for path in paths}
    assert {"density.png", "density-0000.png", "density-0003.png", "wasserstein.png", "minimum_and_mass.png"} <= names
    assert [path.name for path in paths if not is_whole(path)] == []


def test_figures_of_circle_and_joint_runs(tmp_path: Path) -> None:
    ring, times = circle(128), np.linspace(0.0, 3.0, 3)
    densities = np.stack([angular_gaussian(ring.centers, t) for t in times])
    records = fake_records() | {"w2_to_limit": np.full(50, np.nan)}
    paths = write_run_figures(ring, times, densities, records, tmp_path / "circle", limit_basis=[[1.0], [0.0]])
    assert {path.name for path in paths} == {"density.png", "minimum_and_mass.png", "energy_and_mean.png"}
    mesh = healpix(2)
    joint = np.stack([np.stack([angular_gaussian(mesh.centers, t + 0.1 * k) for k in range(4)]) for t in times])
    joint_paths = write_run_figures(mesh, times, joint, {"time": times}, tmp_path / "joint", label_weights=[0.25] * 4)
    assert "slices.png" in {path.name for path in joint_paths}
    assert [path.name for path in [*paths, *joint_paths] if not is_whole(path)] == []


def test_chosen_saves_include_both_ends() -> None:
    assert chosen_saves(21) == [0, 4, 8, 12, 16, 20]
    assert chosen_saves(3) == [0, 1, 2]
    assert chosen_saves(1) == [0]


def test_studies(tmp_path: Path) -> None:
    phases = plots.phase_map([10, 20, 400], [0.2, 0.4], [[0, 1, 1], [0, 0, -1]], ["collapse", "circle"], x_label="β")
    beta = plots.against_beta([10, 20, 40], {"runs": [1.8, 3.7, 7.3]}, lines={"0.183 β": ([10, 40], [1.83, 7.32])})
    angle = np.linspace(0, 2 * np.pi, 32, endpoint=False)
    ring = np.stack([0.8 * np.cos(angle), 0.8 * np.sin(angle), np.full(32, 0.6)], axis=1)
    globe = plots.label_curve(angle, ring, title="a latitude circle")
    for number, axes in enumerate([phases, beta, globe]):
        assert is_whole(plots.save(axes, tmp_path / f"{number}.png"))
    with pytest.raises(InputError, match="do not fit"):
        plots.phase_map([1, 2], [1, 2], [[0, 1]], ["a", "b"])


def test_animation_has_a_frame_per_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mesh = healpix(4)
    densities = [angular_gaussian(mesh.centers, t) for t in (0.0, 0.5, 1.0)]
    path = plots.write_animation(tmp_path / "a.gif", mesh, [0.0, 0.5, 1.0], densities, frames_per_second=10)
    with Image.open(path) as film:
        assert (film.n_frames, film.info["duration"]) == (3, 100)
        first = np.asarray(film.convert("RGB"), dtype=float)
        film.seek(2)
        assert np.abs(np.asarray(film.convert("RGB"), dtype=float) - first).mean() > 2.0
    assert capsys.readouterr().err == ""
    with pytest.raises(InputError, match=r"\.gif or \.mp4"):
        plots.write_animation(tmp_path / "a.webm", mesh, [0.0], densities[:1])
    with pytest.raises(InputError, match="give one each"):
        plots.write_animation(tmp_path / "a.gif", mesh, [0.0], densities)


def test_no_global_state_is_touched() -> None:
    program = """
import sys, matplotlib, numpy as np
settings = lambda: {key: matplotlib.rcParams[key] for key in matplotlib.rcParams if key != "backend"}
before = settings()
from tokensphere import plots
from tokensphere.meshes.circle import circle
plots.circle_figure(circle(8), [0.0], [np.ones(8)])
plots.wasserstein_curve([0.0, 1.0], [1.0, 0.5])
assert settings() == before
assert "matplotlib.pyplot" not in sys.modules
"""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_a_run_without_figures_loads_no_matplotlib(tmp_path: Path) -> None:
    program = f"""
import sys
from pathlib import Path
from tokensphere.config import parse
from tokensphere.run import execute
config = parse({{
    "mesh": {{"kind": "healpix", "nside": 4}},
    "attention": {{"beta": 5.0, "value": [[1.0, 0.0, 0.0], [0.0, 0.3, 0.0], [0.0, 0.0, -0.5]]}},
    "initial": {{"kind": "uniform"}},
    "time": {{"end": 0.5, "saves": 1}},
    "output": {{"figures": False}},
}})
assert execute(config, Path({str(tmp_path / "run")!r})).status == "finished"
print([name for name in ("matplotlib", "xarray", "scipy.optimize") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", program], check=True, timeout=120, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"
