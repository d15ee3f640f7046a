"""Results that print as tables, in a terminal and in a notebook."""

from collections.abc import Iterable, Sequence
from html import escape

from tokensphere.meshes.mesh import Mesh
from tokensphere.pde.attention import Attention
from tokensphere.validation.hypotheses import Density, Floats, Hypothesis
from tokensphere.validation.hypotheses import check_hypotheses as check

COLOURS = {"holds": "#00684a", "fails": "#b03a06"}
MARKS = {"holds": "✓", "fails": "✗"}


class Hypotheses(list[Hypothesis]):
    """The records of ``check_hypotheses``: a list that prints as a table."""

    def __repr__(self) -> str:
        return "\n".join(f"{item.name}  {item.verdict:<9}  {item.value:<12.6g}  {item.reason}" for item in self)

    def _repr_html_(self) -> str:
        rows = [[escape(item.name), verdict(item.verdict), f"{item.value:.5g}", escape(item.reason)] for item in self]
        return table(["", "verdict", "value", "why"], rows)


def check_hypotheses(mesh: Mesh, attention: Attention, rho0: Density | Floats, p: float | None = None) -> Hypotheses:
    """H1, H2 and H3 of the low-temperature theorem, one record each, in a list that prints as a table.

    rho0 is a function of points (…, d) or cell averages (cells,); a function is judged below the mesh width too.
    p: the power H2 is asked for (None: any). A record has name, verdict ("holds", "fails", "undecided"), value,
    tolerance, reason and details. Source: first document, hypotheses 1–3; theory §1.2.
    """
    return Hypotheses(check(mesh, attention, rho0, p))


def verdict(word: str) -> str:
    """A verdict with a mark, so that it reads without colour."""
    return f'<b style="color:{COLOURS.get(word, "#7a5200")}">{MARKS.get(word, "?")} {escape(word)}</b>'


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """An HTML table of cells that are HTML already."""
    top = "".join(f'<th style="text-align:left">{cell}</th>' for cell in head)
    body = "".join(
        "<tr>" + "".join(f'<td style="text-align:left">{cell}</td>' for cell in row) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"
