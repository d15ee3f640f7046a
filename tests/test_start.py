"""What a run loads before its first step: nothing that costs more than it gives."""

import subprocess
import sys

PROGRAM = """
import sys
from pathlib import Path
from tokensphere.pde.threads import ready_numba
ready_numba()
from tokensphere.config import parse
from tokensphere.pde.march import State, march
from tokensphere.recording import row
from tokensphere.task import build_task
value = [[1.0, 0.0, 0.0], [0.0, 0.3, 0.0], [0.0, 0.0, -0.5]]
config = parse({
    "mesh": {"kind": "healpix", "nside": 16},
    "attention": {"beta": 30.0, "value": value},
    "initial": {"kind": "polynomial", "constant": 1.0, "linear": [0.1, 0.3, 0.4]},
    "time": {"end": 1.0, "saves": 1},
}, Path("."))
task = build_task(config)
state = next(march(task.flow, State(0.0, task.density), [0.0, 1.0]))
assert row(task.recorders, state)["w2_to_limit"] > 0
heavy = ("healpy", "astropy", "scipy.linalg", "scipy.special", "scipy.optimize", "matplotlib", "xarray", "ot", "dask")
print([name for name in heavy if name in sys.modules])
"""

AFTERWARDS = """
import numpy as np
from tokensphere.pde.threads import ready_numba
ready_numba()
from numba import njit
import scipy.linalg
matrix, values = np.arange(6.0).reshape(2, 3), np.array([1.0, 2.0, -1.0])
assert np.array_equal(njit(lambda a, b: a @ b)(matrix, values), matrix @ values)
assert np.array_equal(njit(lambda a, b: np.convolve(a, b))(values, values), np.convolve(values, values))
print("same")
"""


def said(program: str) -> str:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=True)
    return done.stdout.strip()


def test_a_run_starts_without_healpy_and_scipys_packages() -> None:
    assert said(PROGRAM) == "[]"


def test_numba_still_multiplies_and_convolves_once_made_ready() -> None:
    assert said(AFTERWARDS) == "same"
