"""The few pieces of HTML that the report is made of."""

import re
from collections.abc import Sequence
from html import escape


def words(text: object) -> str:
    """Text for a page: escaped, with a true minus sign before numbers."""
    return re.sub(r"(?<![\w.\)])-(?=\d)", "−", escape(str(text)))


def section(name: str, heading: str, body: str) -> str:
    """A titled section, or nothing where there is nothing to show."""
    return (
        f'<section aria-labelledby="{name}"><h2 id="{name}">{words(heading)}</h2>\n{body}\n</section>' if body else ""
    )


def figure(uri: str, alt: str, caption: str) -> str:
    """An embedded picture with its caption."""
    return f'<figure><img src="{uri}" alt="{words(alt)}"><figcaption>{words(caption)}</figcaption></figure>'


def table(head: Sequence[str], rows: Sequence[Sequence[str]], numeric: Sequence[int] = (), kind: str = "scroll") -> str:
    """A table of HTML cells (escape them first); kind "wide" breaks its rows into lines on a narrow screen."""
    top = "".join(f'<th scope="col">{cell}</th>' for cell in head)
    body = "".join(
        "<tr>"
        + "".join(f'<td class="number">{c}</td>' if k in numeric else f"<td>{c}</td>" for k, c in enumerate(row))
        + "</tr>"
        for row in rows
    )
    return f'<div class="{kind}"><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'
