"""Exact attention among free tokens against dense attention, in one run: seconds of wall clock, and peak memory.

    python benchmarks/particles.py --tokens 1000000 --beta 100

Dense attention is torch's float64 scaled_dot_product_attention where torch is installed, numpy's softmax in blocks
otherwise.  It is timed at the largest n of a doubling series that stays under --budget seconds and scaled by n².
"""

import argparse
import resource
import time
from collections.abc import Callable

import machine
import numpy as np
from numpy.typing import NDArray

from tokensphere.pde.attention import Attention
from tokensphere.pde.threads import threads
from tokensphere.validation.particle_fields import token_attention

Array = NDArray[np.float64]
KEY = np.array([[0.8, 0.5, 0], [-0.4, 0.9, 0.2], [0.1, 0, 1.1]])
BLOCK = 256


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, default=1_000_000)
    parser.add_argument("--beta", type=float, default=100.0)
    parser.add_argument("--budget", type=float, default=20.0)
    arguments = parser.parse_args()
    print(machine.describe(), flush=True)
    name, dense = contender()
    rng = np.random.default_rng(0)
    positions = rng.normal(size=(arguments.tokens, 3))
    positions /= np.linalg.norm(positions, axis=1, keepdims=True)
    for matrix, B in (("B = I", np.eye(3)), ("general B", KEY)):
        attention = Attention(np.eye(3), B, np.eye(3), arguments.beta)
        weights = np.full(arguments.tokens, 1.0 / arguments.tokens)
        token_attention(positions[:3000], np.full(3000, 1 / 3000), attention, "spectral")  # compile
        exact = sorted(clock(lambda: token_attention(positions, weights, attention)) for _ in range(3))[1]  # noqa: B023
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        count, seconds = largest(dense, positions, attention, arguments.budget)
        scaled = seconds * (arguments.tokens / count) ** 2
        print(
            f"{matrix}: {arguments.tokens} tokens {exact:.2f} s, peak memory of the process {memory:.2f} GB; {name} "
            f"{seconds:.2f} s at n = {count}, {scaled:.0f} s scaled: {scaled / exact:.0f} times as long",
            flush=True,
        )


def contender() -> tuple[str, Callable[[Array, Attention], object]]:
    """Dense attention by torch, or by numpy where torch is missing."""
    try:
        import torch
    except ImportError:
        return "numpy", _numpy

    torch.set_num_threads(threads())

    def dense(positions: Array, attention: Attention) -> object:
        query, key = torch.tensor(attention.tilts(positions))[None, None], torch.tensor(positions)[None, None]
        return torch.nn.functional.scaled_dot_product_attention(query, key, key, scale=1.0)

    return "torch float64", dense


def _numpy(positions: Array, attention: Attention) -> object:
    result, tilts = np.empty_like(positions), attention.tilts(positions)
    for start in range(0, len(positions), BLOCK):
        exponents = tilts[start : start + BLOCK] @ positions.T
        exponents -= exponents.max(axis=1, keepdims=True)
        np.exp(exponents, out=exponents)
        result[start : start + BLOCK] = exponents @ positions / exponents.sum(axis=1, keepdims=True)
    return result


def largest(
    dense: Callable[[Array, Attention], object], positions: Array, attention: Attention, budget: float
) -> tuple[int, float]:
    """The largest n = 2000·2^k whose run is expected to stay under the budget, and its time."""
    count = 2000
    seconds = clock(lambda: dense(positions[:count], attention))
    while 4 * seconds < budget and 2 * count <= len(positions):
        count *= 2
        seconds = clock(lambda n=count: dense(positions[:n], attention))  # type: ignore[misc]
    return count, seconds


def clock(work: Callable[[], object]) -> float:
    """Wall-clock seconds."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
