"""Markdown table and plot of what benchmarks/attention.py wrote.

    python benchmarks/report.py docs/attention_integral.png RUN.json [RUN.json …] > table.md
"""

import json
import sys
from pathlib import Path

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt

METHODS = ("spectral", "tree", "auto", "direct", "numba plain", "numpy", "torch float64", "torch float32")
Row = dict[str, float | str]


def main() -> None:
    """Print the table; draw seconds against cells for the package's methods."""
    picture, *files = sys.argv[1:]
    rows = [row for file in files for row in json.loads(Path(file).read_text())["rows"]]
    print(table(rows))
    draw(rows, picture)


def table(rows: list[Row]) -> str:
    """One line per case; per method milliseconds and, in brackets, how many times faster than the direct sum."""
    cases: dict[tuple[float | str, ...], dict[str, Row]] = {}
    for row in rows:
        key = tuple(row[name] for name in ("nside", "beta", "condition", "density"))
        cases.setdefault(key, {})[str(row["method"])] = row
    shown = [name for name in METHODS if any(name in case for case in cases.values())]
    lines = ["| nside | β | cond(B) | density | " + " | ".join(shown) + " |", "|---" * (4 + len(shown)) + "|"]
    for key, case in sorted(cases.items(), key=lambda item: (item[0][3], *item[0][:3])):
        cells = [_cell(case.get(name)) for name in shown]
        lines.append("| " + " | ".join([*(f"{part:g}" if not isinstance(part, str) else part for part in key), *cells]))
        lines[-1] += " |"
    return "\n".join(lines)


def _cell(row: Row | None) -> str:
    if row is None:
        return ""
    seconds, ratio = float(row["seconds"]), float(row["ratio"])
    time = f"{1e3 * seconds:.3g} ms" if seconds < 1.0 else f"{seconds:,.{0 if seconds >= 100 else 1}f} s"
    error = f", {row['error']:.0e}" if float(row["error"]) > 1e-6 else ""
    return f"{time} ({ratio:,.0f}×{error})" if ratio >= 10 else f"{time} ({ratio:.2g}×{error})"


def draw(rows: list[Row], picture: str) -> None:
    """Seconds against cells at β = 100, one curve per method, condition and density."""
    figure, axes = plt.subplots(figsize=(9, 4.8))
    for colour, name in enumerate(METHODS):
        for condition, density, style in ((1.0, "smooth", "o-"), (4.0, "smooth", "s--"), (1.0, "void", "^:")):
            points = {
                float(row["cells"]): float(row["seconds"])
                for row in rows
                if (row["method"], row["condition"], row["beta"], row["density"]) == (name, condition, 100.0, density)
            }
            if len(points) > 1 and (name, density) != ("spectral", "void"):  # no valid digits there
                label = f"{name}, {condition:g}, {density}"
                axes.loglog(*zip(*sorted(points.items()), strict=True), style, color=f"C{colour}", label=label)
    axes.set_xlabel("cells")
    axes.set_ylabel("seconds per attention field (two points per cell)")
    axes.set_title("β = 100: method, cond(B), density")
    axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    axes.grid(alpha=0.3, which="both")
    figure.tight_layout()
    figure.savefig(picture, dpi=130)


if __name__ == "__main__":
    main()
