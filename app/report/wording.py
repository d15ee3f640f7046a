"""A finding and the numbers in it, for readers."""

import math
from dataclasses import dataclass

VERDICTS = ("holds", "fails", "undecided", "note")


@dataclass(frozen=True)
class Verdict:
    """One finding: "holds", "fails", "undecided" or a plain "note", and the sentence."""

    kind: str
    sentence: str


def number(value: float | None, digits: int = 3) -> str:
    """A number for a reader: 0.0123, 1.2 × 10⁻⁸, ∞, or a dash."""
    if value is None or math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if value == 0 or 1e-3 <= abs(value) < 1e5:
        return f"{value:.{digits}g}".replace("-", "−") if abs(value) < 1e3 else f"{value:,.0f}".replace("-", "−")
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    return f"{mantissa} × 10{int(exponent)}".replace("-", "−").replace(
        f"10{int(exponent)}".replace("-", "−"), "10" + _superscript(int(exponent))
    )


def _superscript(value: int) -> str:
    return str(value).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
