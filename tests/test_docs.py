"""The documentation is true: names exist, links lead somewhere, the notebook and the example run."""

import importlib
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tokensphere.validation.cases import all_cases

ROOT = Path(__file__).parent.parent
PAGES = sorted((ROOT / "docs").glob("*.md"))


def resolve(name: str) -> Any:
    """The module or attribute that a dotted name means."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for attribute in parts[length:]:
            found = getattr(found, attribute)
        return found
    raise AssertionError(f"{name} cannot be imported")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_names_and_files_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for name in re.findall(r"`(tokensphere(?:\.\w+)+)`", text) + re.findall(r"^::: ([\w.]+)$", text, re.MULTILINE):
        resolve(name)
    for path in re.findall(r"`((?:tests|examples|docs|meshes|pde|validation|app)/[\w./]+)`", text):
        assert (ROOT / path).exists(), path


def test_cases_of_the_theory_map_exist() -> None:
    known = set(all_cases())
    for row in (ROOT / "docs" / "theory_map.md").read_text(encoding="utf-8").splitlines():
        cells = row.split("|")
        if len(cells) > 5:
            assert set(re.findall(r"`([\w-]+)`", cells[3])) <= known | {"validate"}, row


def anchors(page: Path) -> set[str]:
    """The anchors that mkdocs gives to a page's headings."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    words = (re.sub(r"[^\w\s-]", "", heading.lower(), flags=re.ASCII) for heading in headings)
    return {re.sub(r"[\s-]+", "-", word).strip("-") for word in words}


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md"], ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path) -> None:
    prose = re.sub(r"^(    .*|```[\s\S]*?```)$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    for target in re.findall(r"\]\(([^)\s]+)\)", prose):
        if target.startswith("http"):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path) if path else page
        assert file.exists(), f"{page.name} → {target}"
        assert not anchor or anchor in anchors(file), f"{page.name} → {target}"


def test_the_kernel_example_runs() -> None:
    (program,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "writing_a_kernel.md").read_text(), re.DOTALL)
    exec(program, {})


def test_the_notebook_runs() -> None:
    """Its cells, one after the other."""
    notebook = json.loads((ROOT / "examples" / "first_steps.ipynb").read_text(encoding="utf-8"))
    space: dict[str, Any] = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), space)
    assert [item.verdict for item in space["hypotheses"]] == ["holds"] * 3
    assert np.all(np.diff([float(distance) for distance in space["distances"]]) < 0)
    assert space["fit"].rate == pytest.approx(0.35, rel=0.15)  # γ/2: theory §1.3 (h)
    assert space["data"].density.shape == (9, 3072)


def test_nothing_of_the_site_is_missing_from_its_navigation() -> None:
    listed = set(re.findall(r"(\w+\.md)", (ROOT / "mkdocs.yml").read_text(encoding="utf-8")))
    assert listed == {page.name for page in PAGES}
