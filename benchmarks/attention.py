"""The attention integral's methods timed against each other in one run: medians of ratios of interleaved pairs.

    python benchmarks/attention.py --nside 16 32 64 128 256 --json attention.json
    python benchmarks/attention.py --nside 64 --points 98304          the issue's one size
Targets are one quadrature point per face (2 per cell).  Methods that touch every pair of target and source run on
evenly spread runs of the targets, SAMPLE of them, and are scaled up.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import contenders
import machine
import numpy as np
from contenders import Array, Contender

from tokensphere.meshes.healpix import healpix
from tokensphere.meshes.mesh import Mesh
from tokensphere.pde.attention import Attention

EVERY_PAIR = ("direct", "numba plain", "numpy", "torch float64", "torch float32")
SAMPLE = dict.fromkeys(EVERY_PAIR, 1024)
RUN = 512


def main() -> None:
    arguments = _arguments()
    if arguments.memory:
        print(json.dumps(_peak(arguments.memory, arguments.nside[0], arguments.beta[0], arguments.condition[0])))
        return
    print(machine.describe(), flush=True)
    rows: list[dict[str, object]] = []
    for nside in arguments.nside:
        for beta in arguments.beta:
            for condition in arguments.condition:
                for density in arguments.density:
                    found = compare(nside, beta, condition, density, arguments.pairs, arguments.only)
                    rows += found
                    for row in found:
                        print(_line(row), flush=True)
    for text in exponents(rows):
        print(text)
    if arguments.json:
        Path(arguments.json).write_text(json.dumps({"machine": machine.describe(), "rows": rows}, indent=1))


def compare(nside: int, beta: float, condition: float, density_name: str, pairs: int, only: list[str] | None) \
        -> list[dict[str, object]]:
    """Rows for every method: seconds (scaled to all targets), ratio to direct, and the error of the mean."""
    mesh, attention = healpix(nside), head(beta, condition)
    points, density = mesh.face_points[mesh.face_offsets[:-1]], densities(mesh)[density_name]
    sample = spread(len(points), 1024)
    reference = contenders.planned("direct", mesh, attention, points[sample])(density)
    makers: dict[str, Callable[[Array], Contender]] = {
        name: lambda x, name=name: contenders.planned(name, mesh, attention, x)  # type: ignore[misc]
        for name in ("direct", "spectral", "tree", "auto")
    }
    makers["numba plain"] = lambda x: contenders.numba_plain(mesh, attention, x)
    makers["numpy"] = lambda x: contenders.numpy_blocked(mesh, attention, x)
    for precision in ("float64", "float32"):
        makers[f"torch {precision}"] = lambda x, p=precision: contenders.torch_attention(p, mesh, attention, x)  # type: ignore[misc]
    ready, plans, errors, scale = {}, {}, {}, {}
    for name, maker in makers.items():
        if only and name not in only and name != "direct":
            continue
        chosen = spread(len(points), SAMPLE.get(name, len(points)))
        start = time.perf_counter()
        try:
            ready[name] = maker(points[chosen])
        except ImportError:
            continue
        plans[name] = time.perf_counter() - start
        scale[name] = len(points) / len(chosen)
        mean, places = ready[name](density), np.isin(chosen, sample)
        kept = np.isin(sample, chosen)
        errors[name] = float(np.linalg.norm(mean[places] - reference[kept], axis=1).max())
    seconds: dict[str, list[float]] = {name: [] for name in ready}
    for _ in range(pairs):
        for name, run in ready.items():
            start = time.perf_counter()
            run(density)
            seconds[name].append((time.perf_counter() - start) * scale[name])
    ratios = {n: statistics.median(d / s for d, s in zip(seconds["direct"], seconds[n], strict=True)) for n in ready}
    return [
        {
            "nside": nside, "beta": beta, "condition": condition, "density": density_name, "method": name,
            "cells": mesh.cells, "points": len(points), "plan": plans[name], "scaled": scale[name],
            "seconds": statistics.median(seconds[name]), "ratio": ratios[name], "error": errors[name],
        }
        for name in ready
    ]


def exponents(rows: list[dict[str, object]]) -> list[str]:
    """Fitted d log seconds / d log cells from nside 32 on, per method and case."""
    groups: dict[tuple[object, ...], list[tuple[float, float]]] = {}
    for row in rows:
        if int(str(row["nside"])) >= 32:
            key = tuple(row[k] for k in ("method", "beta", "condition", "density"))
            groups.setdefault(key, []).append((np.log(float(str(row["cells"]))), np.log(float(str(row["seconds"])))))
    return [
        f"exponent of cost in cells, {key[0]}, beta {key[1]:g}, cond(B) {key[2]:g}, {key[3]}: "
        f"{np.polyfit(*np.array(values).T, 1)[0]:.2f}"
        for key, values in groups.items()
        if len(values) > 2 and key[0] in ("spectral", "tree", "auto")
    ]


def head(beta: float, condition: float) -> Attention:
    """B = I, or a matrix of that condition in a random frame."""
    rng = np.random.default_rng(1)
    left, right = (np.linalg.qr(rng.normal(size=(3, 3)))[0] for _ in range(2))
    key = np.eye(3) if condition == 1.0 else left @ np.diag([1.0, condition**-0.5, 1.0 / condition]) @ right
    return Attention(np.eye(3), key, np.eye(3), beta)


def densities(mesh: Mesh) -> dict[str, Array]:
    """smooth: a polynomial; void: two antipodal clusters over a floor of 1e−30."""
    axis = np.linalg.qr(np.random.default_rng(2).normal(size=(3, 3)))[0][0]
    along = np.abs(mesh.centers @ axis)
    return {
        "smooth": 1 + 0.5 * mesh.centers[:, 2] + 0.3 * mesh.centers[:, 0] * mesh.centers[:, 1],
        "void": np.exp(-400 * (1 - along)) + 1e-30,
    }


def spread(total: int, count: int) -> np.ndarray:
    """Indices of `count` of `total` targets, in runs of RUN neighbours spread evenly."""
    if count >= total:
        return np.arange(total)
    starts = np.linspace(0, total - RUN, count // RUN).astype(np.int64)
    return np.unique(starts[:, None] + np.arange(RUN))


def _peak(method: str, nside: int, beta: float, condition: float) -> dict[str, float]:
    """Peak memory that planning and one call add to a process that holds the mesh; run in a process of its own."""
    small = healpix(2)  # imports and compilation first
    contenders.planned(method, small, head(beta, condition), np.tile(small.face_points, (60, 1)))(np.ones(small.cells))
    mesh = healpix(nside)
    before = _status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # start the peak anew: building the mesh has its own
    contenders.planned(method, mesh, head(beta, condition), mesh.face_points)(densities(mesh)["smooth"])
    return {"bytes per cell": (_status("VmHWM") - before) / mesh.cells, "peak": _status("VmHWM")}


def _status(field: str) -> float:
    """Resident memory now (VmRSS) or at its peak (VmHWM), in bytes; Linux only."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024.0 * float(next(line for line in lines if line.startswith(field)).split()[1])


def peak_in_a_process(method: str, nside: int, beta: float, condition: float) -> dict[str, float]:
    """`_peak`, started from outside."""
    command = [sys.executable, __file__, "--memory", method, "--nside", str(nside), "--beta", str(beta)]
    command += ["--condition", str(condition)]
    return dict(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))


def _line(row: dict[str, object]) -> str:
    return (
        f"nside {row['nside']:4d}  beta {row['beta']:6g}  cond {row['condition']:3g}  {row['density']:7s} "
        f"{row['method']:14s} {row['seconds']:10.4f} s  {row['ratio']:9.2f} x direct  error {row['error']:.1e}"
        f"  plan {row['plan']:.2f} s" + ("" if row["scaled"] == 1 else "  (scaled)")
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nside", type=int, nargs="+", default=[16, 32, 64])
    parser.add_argument("--beta", type=float, nargs="+", default=[10.0, 100.0, 1000.0])
    parser.add_argument("--condition", type=float, nargs="+", default=[1.0, 4.0])
    parser.add_argument("--density", nargs="+", default=["smooth"], choices=["smooth", "void"])
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--only", nargs="+", help="these methods only (direct always runs)")
    parser.add_argument("--json", help="write the rows to this file")
    parser.add_argument("--memory", help="print the peak memory of this method, in bytes per cell, and stop")
    return parser.parse_args()


if __name__ == "__main__":
    main()
