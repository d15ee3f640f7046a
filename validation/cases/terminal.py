"""Beyond the plateau: growth of the uniform state, exits, terminal rates and the seven cases of theory §1.6."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tokensphere.meshes.circle import circle
from tokensphere.meshes.harmonics import degrees_and_orders, synthesise
from tokensphere.meshes.healpix import healpix
from tokensphere.meshes.mesh import Mesh
from tokensphere.meshes.quadrature import cell_averages
from tokensphere.pde import densities
from tokensphere.pde.attention import Attention
from tokensphere.validation.cases.registry import Row, below, case
from tokensphere.validation.cases.theorem import attention_of, planar, relative, solved
from tokensphere.validation.phases import Thresholds, distance_to_eigenspace, read_phases, resolution
from tokensphere.validation.reached import reached_state
from tokensphere.validation.stability import degree_amplitudes, dominant_degree, growth_rate, measured_rates
from tokensphere.validation.stillness import stillness
from tokensphere.validation.terminal import predict_terminal

Array = NDArray[np.float64]


def measured_growth(mesh: Mesh, degree: int, beta: float, normalised: bool, amplitude: float = 1e-3) -> float:
    """Growth rate of one random harmonic degree on the uniform density, measured on a run with V = I."""
    generator = np.random.default_rng(degree)
    degrees, orders = degrees_and_orders(degree)
    coefficients = np.where(degrees == degree, generator.normal(size=(2, len(degrees))), 0.0)
    wave = coefficients[0] + 1j * np.where(orders == 0, 0.0, coefficients[1])
    wave /= np.sqrt(np.sum(np.where(orders == 0, 1, 2) * np.abs(wave) ** 2))
    perturbation = cell_averages(mesh, lambda x: synthesise(wave, x.reshape(-1, 3), degree).reshape(x.shape[:-1]))
    rho0 = 1 + amplitude * perturbation
    rho0 /= rho0 @ mesh.areas
    fastest = growth_rate(3, dominant_degree(3, beta), beta, normalised=normalised)
    times = np.linspace(0, 0.3 / fastest, 4)
    attention = Attention(np.eye(3), np.eye(3), np.eye(3), beta, normalised)
    amplitudes = degree_amplitudes(mesh, solved(mesh, attention, rho0, times), degree)
    return measured_rates(times, amplitudes)[-1].rate


def growth_rows(name: str, nside: int, degrees: range, betas: tuple[float, ...], bound: float) -> list[Row]:
    """Relative errors of measured growth rates, softmax and unnormalised."""
    mesh = healpix(nside)
    return [
        relative(
            f"{name}: l={degree}, beta={beta:g}, {'softmax' if normalised else 'unnormalised'}",
            nside,
            measured_growth(mesh, degree, beta, normalised),
            growth_rate(3, degree, beta, normalised=normalised),
            bound,
        )
        for degree in degrees
        for beta in betas
        for normalised in (True, False)
    ]


@case("uniform_growth")
def uniform_growth() -> list[Row]:
    """Growth of degrees 1 and 3 on the uniform density of S² at β = 5, nside 16, against theory §1.4."""
    return growth_rows("uniform_growth", 16, range(1, 4, 2), (5.0,), 0.01)


@case("uniform_growth_all", level="full")
def uniform_growth_all() -> list[Row]:
    """Growth of degrees 1…6 on the uniform density of S² at β = 2, 5, 10, nside 32, against theory §1.4."""
    return growth_rows("uniform_growth_all", 32, range(1, 7), (2.0, 5.0, 10.0), 0.003)


def exit_time(attention: Attention, cells: int, end: float, thresholds: Thresholds) -> float:
    """Time at which the distance to E exceeds the outer threshold on the circle, after it was below the inner one."""
    mesh, times = circle(cells), np.linspace(0, end, 301)
    run = solved(mesh, attention, densities.from_function(mesh, planar), times)
    basis = np.array([[1.0], [0.0]])
    return read_phases(times, distance_to_eigenspace(mesh, run, basis), thresholds).exit_time


@case("exit_logarithmic", level="full")
def exit_logarithmic() -> list[Row]:
    """Case A of theory §1.5, V = diag(1, 2), B = diag(1, .1): distance above .3 again at 2.52, 4.17, 5.7."""
    rows = []
    for beta, cells, target in ((10.0, 1024, 2.52), (40.0, 1024, 4.17), (160.0, 2048, 5.7)):
        attention = Attention(np.eye(2), np.diag([1.0, 0.1]), np.diag([1.0, 2.0]), beta)
        found = exit_time(attention, cells, 1.2 * target, Thresholds(inside=0.3, outside=0.3))
        rows.append(relative(f"exit_logarithmic: beta={beta:g}", cells, found, target, 0.03))
        fine = resolution(circle(cells), attention).fine_enough
        rows.append(below(f"exit_logarithmic: mesh reported too coarse, beta={beta:g}", cells, float(not fine), 0.0))
    return rows


@case("exit_linear", level="full")
def exit_linear() -> list[Row]:
    """Case B of theory §1.5, Bᵀ = rotation by 45°, M = diag(1, −.6): distance above .15 at 10.3, 21.1, 42.8."""
    c = np.sqrt(0.5)
    rows = []
    for beta, cells, target in ((60.0, 1024, 10.3), (120.0, 1024, 21.1), (240.0, 2048, 42.8)):
        attention = attention_of(np.diag([1.0, -0.6]), np.array([[c, -c], [c, c]]), beta)
        found = exit_time(attention, cells, 1.1 * target, Thresholds())
        rows.append(relative(f"exit_linear: beta={beta:g}", cells, found, target, 0.03))
    return rows


@case("terminal_rate_mesh")
def terminal_rate_mesh() -> list[Row]:
    """ν−λ of the mean of a cluster on the circle: V = diag(1, .4) turns it back, V = diag(1, 2) away from e1."""
    mesh, times = circle(512), np.linspace(0, 1, 6)
    start = np.array([1.0, 0.1]) / np.hypot(1.0, 0.1)
    rho0 = densities.von_mises_fisher(mesh, start, 100.0)
    rows = []
    for other in (0.4, 2.0):
        attention = Attention(np.eye(2), np.eye(2), np.diag([1.0, other]), 20.0)
        means = solved(mesh, attention, rho0, times) @ (mesh.areas[:, None] * mesh.centers)
        rate = float(np.polyfit(times, np.log(means[:, 1] / means[:, 0]), 1)[0])
        rows.append(relative(f"terminal_rate_mesh: ν={other:g}", 512, rate, other - 1.0, 0.02))
    return rows


def seven_cases() -> dict[str, tuple[Array, Array, float, float, str, int]]:
    """V, B, β, end time, expected name and index of the eigenvector reached (−1: none), theory §1.6."""
    eye = np.eye(2)
    turning = np.array([[1.0, -1.0], [1.0, 1.0]])
    symmetric = np.linalg.solve(turning, np.diag([1.0, 0.5])).T  # VBᵀ = diag(1, .5)
    return {
        "V=diag(1,2), B=diag(1,.1)": (np.diag([1.0, 2.0]), np.diag([1.0, 0.1]), 20.0, 10.0, "one cluster", 1),
        "V=B=diag(−2,1)": (np.diag([-2.0, 1.0]), np.diag([-2.0, 1.0]), 20.0, 8.0, "two clusters", 0),
        "V=diag(−1,.5), B=−I": (np.diag([-1.0, 0.5]), -eye, 20.0, 12.0, "two clusters", 0),
        "V=diag(2,−1), B=−I": (np.diag([2.0, -1.0]), -eye, 20.0, 12.0, "one cluster", 0),
        "V=diag(−1,1.5), B=−I": (np.diag([-1.0, 1.5]), -eye, 20.0, 20.0, "one cluster", 1),
        "V=diag(−1,−2), B=I": (np.diag([-1.0, -2.0]), eye, 50.0, 20.0, "smeared", 0),
        "V=1±i": (turning, symmetric, 20.0, 15.0, "rotating", -1),
    }


@case("terminal_names", level="full")
def terminal_names() -> list[Row]:
    """The seven cases of theory §1.6 on the circle: names predicted and reached, β·Var of the smear."""
    mesh = circle(512)
    rho0 = densities.from_function(mesh, planar)
    rows = []
    for name, (value, interaction, beta, end, expected, index) in seven_cases().items():
        attention = Attention(np.eye(2), interaction, value, beta)
        density = solved(mesh, attention, rho0, np.array([end]))[-1]
        found = reached_state(mesh, density, value, interaction, beta)
        predicted = predict_terminal(value, interaction, beta, dominant_line(value, interaction))
        named = found.name == expected and (predicted.name in (expected, "one or two clusters"))
        if index >= 0:
            reached = np.abs(found.vectors[found.nearest][index]) > 0.99
            named = named and bool(reached) and bool(np.abs(predicted.basis[index, 0]) > 0.99)
        rows.append(below(f"terminal_names: {name}", 512, float(not named), 0.0))
        if expected == "smeared":
            rows.append(relative("terminal_names: beta·Var of the smear", 512, found.scaled_variance, 1.0, 0.1))
            still = stillness(mesh, attention, density).state
            rows.append(below("terminal_names: smear called stationary", 512, float(still == "stationary"), 0.0))
    return rows


def dominant_line(value: Array, interaction: Array) -> Array:
    """Basis (d, 1) of E for VBᵀ with a simple largest eigenvalue."""
    matrix = value @ interaction.T
    return np.asarray(np.linalg.eigh((matrix + matrix.T) / 2)[1][:, -1:])
