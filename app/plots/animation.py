"""A density in motion, written as GIF or MP4."""

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from matplotlib import colormaps
from numpy.typing import ArrayLike, NDArray
from PIL import Image
from tqdm import tqdm

from tokensphere.meshes.errors import InputError
from tokensphere.meshes.mesh import Mesh
from tokensphere.plots.canvas import new_figure, pixels
from tokensphere.plots.circle import circle_density
from tokensphere.plots.colours import DENSITY_MAP, ColourScale, colour_scale
from tokensphere.plots.sphere import colour_bar, density_map, rasterise, scale_words
from tokensphere.plots.views import Mollweide, View

Frame = NDArray[np.uint8]


def write_animation(
    path: str | Path,
    mesh: Mesh,
    times: Sequence[float],
    densities: Sequence[ArrayLike],
    *,
    view: View | None = None,
    scale: ColourScale | None = None,
    limit_basis: ArrayLike | None = None,
    frames_per_second: float = 8.0,
    progress: bool = True,
) -> Path:
    """Write one frame per given time to ``path`` (.gif, or .mp4 where ffmpeg is installed); returns the path.

    All frames share one colour scale. The progress bar appears on a terminal only. Raises InputError for another
    suffix, no frames, or an MP4 without ffmpeg.
    """
    target = Path(path)
    if len(times) == 0 or len(times) != len(densities):
        raise InputError(f"An animation was asked of {len(times)} times and {len(densities)} densities; give one each.")
    if target.suffix not in (".gif", ".mp4"):
        raise InputError(f"An animation cannot be written as {target.suffix!r}; name the file .gif or .mp4.")
    if target.suffix == ".mp4" and shutil.which("ffmpeg") is None:
        raise InputError(
            f"Writing {target.name} needs the program ffmpeg, which is not installed; write a .gif instead."
        )
    shade = scale if scale is not None else colour_scale(np.stack([np.asarray(rho, dtype=float) for rho in densities]))
    frames = _frames(mesh, times, densities, view, shade, limit_basis)
    shown = tqdm(frames, total=len(times), desc=target.name, unit="frame", disable=None if progress else True)
    if target.suffix == ".gif":
        _write_gif(target, shown, frames_per_second)
    else:
        _write_mp4(target, shown, frames_per_second)
    return target


def _frames(
    mesh: Mesh,
    times: Sequence[float],
    densities: Sequence[ArrayLike],
    view: View | None,
    scale: ColourScale,
    limit_basis: ArrayLike | None,
) -> Iterator[Frame]:
    chosen = view if view is not None else Mollweide()
    raster = rasterise(mesh, chosen, 700) if mesh.dimension == 3 else None
    for time, density in zip(times, densities, strict=True):
        figure = new_figure(6.6, 4.2 if isinstance(chosen, Mollweide) else 6.6)
        axes = figure.add_subplot()
        if raster is not None:
            density_map(mesh, density, chosen, axes, scale=scale, limit_basis=limit_basis, raster=raster)
            colour_bar(figure, [axes], scale, scale_words(scale, density).split(";")[0])
            axes.set_title(f"t = {time:.3f}", fontsize=11, loc="left")
        else:
            circle_density(mesh, [time], [density], axes, log=scale.log, limit_basis=limit_basis)
            axes.set_ylim(scale.low, 1.2 * scale.high)
            axes.set_title(f"t = {time:.3f}", fontsize=11, loc="left")
        yield pixels(figure)


def _write_gif(target: Path, frames: Iterator[Frame], frames_per_second: float) -> None:
    palette = _palette()
    pictures = [Image.fromarray(frame).quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
    pictures[0].save(
        target, save_all=True, append_images=pictures[1:], duration=round(1000.0 / frames_per_second), loop=0
    )


def _palette() -> Image.Image:
    """The density colours and greys. A palette fitted to each frame would lose the few bright pixels of a cluster."""
    shades = np.asarray(colormaps[DENSITY_MAP](np.linspace(0.0, 1.0, 208)))[:, :3]
    greys = np.repeat(np.linspace(0.0, 1.0, 48)[:, None], 3, axis=1)
    palette = Image.new("P", (1, 1))
    palette.putpalette(np.round(255.0 * np.concatenate([shades, greys])).astype(np.uint8).ravel().tolist())
    return palette


def _write_mp4(target: Path, frames: Iterator[Frame], frames_per_second: float) -> None:
    # Imported here because it brings in pyplot, whose registry of figures is global.
    from matplotlib.animation import FFMpegWriter

    writer = FFMpegWriter(fps=max(1, round(frames_per_second)), bitrate=2400)
    figure = None
    for frame in frames:
        if figure is None:
            height, width = frame.shape[0] // 2 * 2, frame.shape[1] // 2 * 2
            figure = new_figure(width / 100.0, height / 100.0)
            figure.set_dpi(100)
            figure.set_layout_engine("none")
            image = figure.figimage(frame[:height, :width])
            writer.setup(figure, str(target), dpi=100)
        image.set_data(frame[:height, :width])
        writer.grab_frame()
    writer.finish()
