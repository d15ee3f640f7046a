"""Remake the gallery: every program's figure and number, and the page that shows them.

``python examples/gallery/remake.py [--quick] [--out docs]`` writes OUT/gallery/*.png and OUT/gallery.md; it ends 1
where a number misses its closed form. ``make gallery`` calls it.
"""

import argparse
import importlib
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from common import Check
from tqdm import tqdm

from tokensphere import plots

HERE = Path(__file__).parent
FIRST = (
    "corollary2",
    "plateau",
    "envelope",
    "lifetime_logarithmic",
    "lifetime_linear",
    "terminal",
    "smeared",
    "great_circle_limit",
)
SECOND = (
    "usa_collapse",
    "rope_latitude",
    "generalised_rope",
    "rope_poisson",
    "rope_ring",
    "toeplitz",
    "distance_bias",
    "prefix_universality",
    "metastable_clusters",
)
REPOSITORY = "examples/gallery"


def entry(name: str, found: Check) -> str:
    """One claim on the page: its words, its number, its figure and the command that makes it."""
    title, *rest = (importlib.import_module(name).__doc__ or "").strip().split("\n\n")
    title = " ".join(title.split())
    text = "\n\n".join(" ".join(part.split()) for part in rest)
    return (
        f"### {title}\n\n{text}\n\n![{title}](gallery/{name}.png)\n\n"
        f"**{found.what}**: {found.value:.5g}, expected {found.expected:.5g} ± {found.tolerance:.2g} ({found.source}). "
        f"{'Holds.' if found.holds else '**Fails.**'} Made by `python {REPOSITORY}/{name}.py`.\n"
    )


def remake(names: Sequence[str], quick: bool, pictures: Path, numbers: Path) -> dict[str, Check]:
    """Run the programs named; the numbers of all others stay as they are on disk."""
    known = json.loads(numbers.read_text(encoding="utf-8")) if numbers.exists() else {}
    for name in tqdm(names, unit="figure", disable=None):
        module = importlib.import_module(name)
        result = module.compute(quick)
        found = module.check(result)
        plots.save(module.draw(result), pictures / f"{name}.png")
        known[name] = asdict(found)
        numbers.write_text(json.dumps(known, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        sys.stdout.write(f"{name}: {found}\n")
        sys.stdout.flush()
    return {name: Check(**known[name]) for name in (*FIRST, *SECOND) if name in known}


def main() -> int:
    """Run the programs; 0 where every number holds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="coarse meshes and fewer temperatures, under 3 minutes")
    parser.add_argument("--out", type=Path, default=Path("docs"))
    parser.add_argument("--only", nargs="+", choices=(*FIRST, *SECOND), default=(*FIRST, *SECOND))
    options = parser.parse_args()
    pictures = options.out / "gallery"
    pictures.mkdir(parents=True, exist_ok=True)
    sys.path.insert(0, str(HERE))
    found = remake(options.only, options.quick, pictures, pictures / "numbers.json")
    page = [
        "# Gallery",
        "Every figure below is made by one short program, which also asserts one number against a closed form of the "
        "theory. `make gallery` remakes them all, `make gallery LEVEL=--quick` coarsely.",
        "## Low temperature (first document)",
        *(entry(name, found[name]) for name in FIRST if name in found),
        "## Auxiliary variables (second document)",
        *(entry(name, found[name]) for name in SECOND if name in found),
    ]
    (options.out / "gallery.md").write_text("\n\n".join(page), encoding="utf-8")
    return 0 if all(check.holds for check in found.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
