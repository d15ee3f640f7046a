"""Ring order, at the border only: inside, every array is nested."""

import numpy as np

from tokensphere.meshes.errors import InputError
from tokensphere.meshes.mesh import Floats
from tokensphere.meshes.nested import ring_numbers

ORDERS = ("ring", "nested")


def to_nested(values: Floats, nside: int, order: str) -> Floats:
    """A map (…, cells) in the named order, put into nested order.

    Raises:
        InputError: if the order is neither "ring" nor "nested".
    """
    check_order(order)
    return values[..., ring_numbers(nside)] if order == "ring" else values


def from_nested(values: Floats, nside: int, order: str) -> Floats:
    """A nested map (…, cells) in the named order.

    Raises:
        InputError: if the order is neither "ring" nor "nested".
    """
    check_order(order)
    if order == "nested":
        return values
    ring = np.empty_like(values)
    ring[..., ring_numbers(nside)] = values
    return ring


def check_order(order: str) -> None:
    """Refuse an ordering that is not one of ORDERS (InputError)."""
    if order not in ORDERS:
        raise InputError(f'the order is {order!r}; it must be "ring" or "nested".')
