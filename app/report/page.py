"""The page: findings, interactive picture, sections and data, put into the template."""

import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from string import Template

from tokensphere.report import sections
from tokensphere.report.embedding import Embedded, embed
from tokensphere.report.loading import RunData
from tokensphere.report.markup import words
from tokensphere.report.payload import payload
from tokensphere.report.predictions import Curve
from tokensphere.report.wording import Verdict


def page(
    run: RunData,
    found: Sequence[Verdict],
    predictions: Mapping[str, Curve],
    phases: Sequence[tuple[str, float, float]],
    overview: Path | None = None,
) -> str:
    """The whole HTML document; ``overview`` is the file of the maps of six times, where there is one."""
    joint = run.densities if run.densities.ndim == 3 else run.densities[:, None, :]
    embedded = embed(run.mesh, joint)
    below = [
        sections.hypotheses_section(run),
        sections.distance_section(run, predictions, phases),
        sections.regularity_section(run),
        sections.energy_section(run),
        sections.order_section(run),
        sections.spectrum_section(run),
        sections.times_section(run, overview),
        sections.reading_section(run),
        sections.making_section(run),
    ]
    assets = files("tokensphere.report") / "assets"
    sphere = run.mesh.dimension == 3
    return Template((assets / "page.html").read_text(encoding="utf-8")).substitute(
        title=words(f"{run.name}: tokensphere report"),
        heading=words(run.name),
        lead=words(lead(run)),
        verdicts=verdict_list(found),
        look_heading="The density on the sphere" if sphere else "The density on the circle",
        look_note=words(look_note(embedded)),
        sections="\n".join(part for part in below if part),
        data=json.dumps(payload(run, embedded), separators=(",", ":")).replace("<", "\\u003c"),
        style=(assets / "report.css").read_text(encoding="utf-8"),
        script=(assets / "report.js").read_text(encoding="utf-8"),
    )


def lead(run: RunData) -> str:
    """One sentence under the title."""
    what = "sphere S²" if run.mesh.dimension == 3 else "circle S¹"
    law = "the law of tokens" if run.attention is not None else "the joint law of tokens and labels"
    return f"Mean-field self-attention: {law} on the {what} as a density, {run.title}, t = 0 … {run.config.time.end:g}."


def verdict_list(found: Sequence[Verdict]) -> str:
    """The findings as a list whose marks (✓ ✗ ? –) repeat the verdict without colour."""
    verdict = {"holds": "holds: ", "fails": "fails: ", "undecided": "undecided: ", "note": ""}
    items = [
        f'<li class="{item.kind}"><span class="heard">{verdict[item.kind]}</span>{words(item.sentence)}</li>'
        for item in found
    ]
    return '<ul class="verdicts">\n' + "\n".join(items) + "\n</ul>"


def look_note(embedded: Embedded) -> str:
    """What was done to the numbers behind the picture."""
    error = max(100.0 * embedded.relative_error, 1e-3)
    notes = [f"Values are stored on this page to {error:.2g} % of themselves", *embedded.notes]
    return "; ".join(notes) + "."
