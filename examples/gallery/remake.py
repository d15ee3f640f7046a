"""Remake the gallery: every program's figure and number, and the page that shows them.

``python examples/gallery/remake.py [--quick] [--out docs]`` writes OUT/gallery/*.png and OUT/gallery.md; it ends 1
where a number misses its closed form. ``make gallery`` calls it.
"""

import argparse
import importlib
import sys
import time
from pathlib import Path
from types import ModuleType

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
    "smeared",
    "great_circle_limit",
)
SECOND = (
    "usa_collapse",
    "rope_latitude",
    "rope_poisson",
    "rope_ring",
    "toeplitz",
    "prefix_universality",
    "metastable_clusters",
)
REPOSITORY = "examples/gallery"


def entry(module: ModuleType, found: Check, seconds: float, name: str) -> str:
    """One claim on the page: its words, its number, its figure and the command that makes it."""
    title, *rest = (module.__doc__ or "").strip().split("\n\n")
    title = " ".join(title.split())
    text = "\n\n".join(" ".join(part.split()) for part in rest)
    return (
        f"### {title}\n\n{text}\n\n![{title}](gallery/{name}.png)\n\n"
        f"**{found.what}**: {found.value:.5g}, expected {found.expected:.5g} ± {found.tolerance:.2g} ({found.source}). "
        f"{'Holds.' if found.holds else '**Fails.**'}\n\n"
        f"`python {REPOSITORY}/{name}.py` ({seconds:.0f} s)\n"
    )


def main() -> int:
    """Run all programs; 0 where every number holds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="coarse meshes and fewer temperatures, under 3 minutes")
    parser.add_argument("--out", type=Path, default=Path("docs"))
    options = parser.parse_args()
    pictures = options.out / "gallery"
    pictures.mkdir(parents=True, exist_ok=True)
    sys.path.insert(0, str(HERE))
    entries: dict[str, str] = {}
    failed = []
    for name in tqdm((*FIRST, *SECOND), unit="figure", disable=None):
        module, began = importlib.import_module(name), time.perf_counter()
        result = module.compute(options.quick)
        found = module.check(result)
        plots.save(module.draw(result), pictures / f"{name}.png")
        entries[name] = entry(module, found, time.perf_counter() - began, name)
        sys.stdout.write(f"{name}: {found}\n")
        sys.stdout.flush()
        if not found.holds:
            failed.append(name)
    page = [
        "# Gallery",
        "Every figure below is made by one short program, which also asserts one number against a closed form of the "
        "theory. `make gallery` remakes them all" + (" (this page: the quick level)." if options.quick else "."),
        "## Low temperature (first document)",
        *(entries[name] for name in FIRST),
        "## Auxiliary variables (second document)",
        *(entries[name] for name in SECOND),
    ]
    (options.out / "gallery.md").write_text("\n\n".join(page), encoding="utf-8")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
