"""HEALPix maps: the same physical map in either order, against healpy's own reading and writing."""

from pathlib import Path

import healpy
import numpy as np
import pytest

from tokensphere.fits import read_map, write_map
from tokensphere.meshes.errors import InputError

NSIDE = 4


@pytest.fixture
def nested() -> np.ndarray:
    return np.random.default_rng(3).random(12 * NSIDE**2)


@pytest.mark.parametrize("order", ["ring", "nested"])
def test_healpy_reads_what_we_write_in_either_order(tmp_path: Path, nested: np.ndarray, order: str) -> None:
    path = tmp_path / "map.fits"
    write_map(path, nested, order)
    assert np.array_equal(healpy.read_map(path, dtype=np.float64), healpy.reorder(nested, n2r=True))  # healpy's default
    assert np.array_equal(healpy.read_map(path, nest=True, dtype=np.float64), nested)
    stored = nested if order == "nested" else healpy.reorder(nested, n2r=True)
    assert np.array_equal(healpy.read_map(path, nest=None, dtype=np.float64), stored)
    assert np.array_equal(read_map(path), nested)
    assert np.array_equal(read_map(path, order), nested)


@pytest.mark.parametrize("nest", [False, True])
def test_we_read_what_healpy_writes_in_either_order(tmp_path: Path, nested: np.ndarray, nest: bool) -> None:
    path = tmp_path / "map.fits"
    healpy.write_map(path, nested if nest else healpy.reorder(nested, n2r=True), nest=nest, dtype=np.float64)
    assert np.array_equal(read_map(path), nested)


def test_arrays_need_their_order_said(tmp_path: Path, nested: np.ndarray) -> None:
    path = tmp_path / "map.npy"
    np.save(path, healpy.reorder(nested, n2r=True))
    assert np.array_equal(read_map(path, "ring"), nested)
    with pytest.raises(InputError, match="order"):
        read_map(path)


def test_wrong_orders_and_files_are_refused(tmp_path: Path, nested: np.ndarray) -> None:
    path = tmp_path / "map.fits"
    write_map(path, nested, "ring")
    with pytest.raises(InputError, match=r"ring.*nested"):
        read_map(path, "rign")
    with pytest.raises(InputError, match=r"ring.*nested"):
        write_map(path, nested, "NEST")
    with pytest.raises(InputError, match="leave order out"):
        read_map(path, "nested")
    with pytest.raises(InputError, match="does not exist"):
        read_map(tmp_path / "none.fits")
    (tmp_path / "text.fits").write_text("no map")
    with pytest.raises(InputError, match="cannot be read"):
        read_map(tmp_path / "text.fits")
    with pytest.raises(InputError, match="12·nside²"):
        write_map(path, nested[:-1])
    assert np.array_equal(read_map(path), nested)  # the refused writes left it as it was


def test_either_order_of_a_map_starts_the_same_run(tmp_path: Path, nested: np.ndarray) -> None:
    from tokensphere.config import parse
    from tokensphere.config.building import build_initial, build_mesh

    starts = []
    for order in ("ring", "nested"):
        write_map(tmp_path / f"{order}.fits", nested, order)
        config = parse(
            {
                "mesh": {"kind": "healpix", "nside": 8},
                "attention": {"beta": 1.0, "value": "identity"},
                "initial": {"kind": "healpix_map", "path": f"{order}.fits"},
                "time": {"end": 1.0},
            },
            tmp_path,
        )
        starts.append(build_initial(config.initial, build_mesh(config.mesh)))
    assert np.array_equal(starts[0], starts[1])
    assert starts[0].mean() == pytest.approx(1 / (4 * np.pi), rel=1e-14)
