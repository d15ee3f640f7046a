"""The one thread setting for numba, ducc0 and BLAS."""

import os
import sys

from tokensphere.meshes.errors import InputError


def available_threads() -> int:
    """Processors this process may run on, and numba's own bound on its threads."""
    import numba

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cores, int(vars(numba.config)["NUMBA_NUM_THREADS"])))


_chosen: list[int] = []


def set_threads(count: int) -> None:
    """Run every parallel part on `count` threads; more than the machine has means as many as it has.

    Results agree to 1e-12 between thread counts and bitwise between repeats at one count.
    Raises InputError unless count is a whole number of at least 1.
    """
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise InputError(f"threads = {count!r} was given, but it must be a whole number of at least 1; leave it out "
                         "to use every processor.")
    import numba
    import threadpoolctl

    used = min(count, available_threads())
    _chosen[:] = [used]
    numba.set_num_threads(used)
    threadpoolctl.threadpool_limits(limits=used, user_api="blas")


def threads() -> int:
    """Number of threads in force (every processor until `set_threads` is called)."""
    return _chosen[0] if _chosen else available_threads()


def ready_numba() -> None:
    """Load numba's tables without scipy.linalg, which takes a quarter of a second.

    numba asks for it when its first kernel is loaded, and would only use it to compile np.convolve and np.correlate;
    without it these take numba's own loop. Meant for a program of our own, at its start: nothing is done where
    scipy.linalg is there already.
    """
    name = "scipy.linalg"
    if name in sys.modules:
        return
    sys.modules[name] = None  # type: ignore[assignment]
    try:
        import numba.np.arraymath  # noqa: F401
    finally:
        del sys.modules[name]
