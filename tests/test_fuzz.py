"""Mutated configurations: never a traceback, and never a misspelt key that goes unnoticed."""

import json
import random
import string
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tokensphere import run
from tokensphere.cli import status
from tokensphere.config import apply_settings, parse, to_toml
from tokensphere.config.writing import toml
from tokensphere.meshes.errors import InputError

DOCUMENTS = [
    """
[mesh]
kind = "circle"
cells = 16
[attention]
beta = 5.0
value = [[1.0, 0.0], [0.0, -0.6]]
query = "identity"
[initial]
kind = "mixture"
[[initial.components]]
kind = "von_mises_fisher"
weight = 1.0
mean = [1.0, 0.0]
concentration = 2.0
[[initial.components]]
kind = "polynomial"
weight = 2.0
linear = [0.2, 0.1]
[time]
end = 1.0
saves = 2
[solver]
method = "direct"
[output]
figures = false
""",
    """
[mesh]
kind = "healpix"
nside = 2
[labels]
kind = "finite"
weights = [1.0, 2.0]
[kernel]
kind = "prefix"
beta = 2.0
factor = "1/beta"
matrices = ["identity", [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]]
[initial]
kind = "polynomial"
constant = 1.0
linear = [0.1, 0.0, 0.0]
perturbation = 0.1
seed = 3
[time]
end = 1.0
saves = 2
""",
]

# No large valid sizes among them: a configuration that is accepted is built.
ODDITIES: list[Any] = [
    0,
    -1,
    3,
    10**30,
    -0.0,
    1e308,
    1e-308,
    float("nan"),
    float("inf"),
    -float("inf"),
    True,
    "",
    "identity",
    "nan",
    "x" * 99,
    [],
    [[]],
    {},
    [1],
    [[1.0, 2.0]],
    [[1, "a"]],
    [[float("nan")]],
    {"a": {"b": 1}},
    [{"kind": "uniform"}],
    "\u202e",
    "circle",
    "healpix",
    "../../etc/passwd",
    [[[[1]]]],
]


@pytest.fixture(autouse=True)
def nothing_is_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Configurations are read, checked and built, but not marched."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(run, "_march", lambda one, *_: run.Outcome("finished", one.folder.path, 0.0, 0))


def paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in nested tables and lists."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, part in parts for place in [(*path, key), *paths(part, (*path, key))]]


def holder(document: Any, path: tuple[Any, ...]) -> Any:
    for key in path[:-1]:
        document = document[key]
    return document


def misspell(document: dict[str, Any], rng: random.Random) -> None:
    path = rng.choice([place for place in paths(document) if isinstance(place[-1], str)])
    table, key = holder(document, path), path[-1]
    index = rng.randrange(len(key))
    other = rng.choice(string.ascii_lowercase)
    misspelt = rng.choice(
        [key[:index] + key[index + 1 :], key[:index] + other + key[index:], key[:index] + other + key[index + 1 :]]
    )
    if misspelt in table or not misspelt:
        misspelt = key + "x"
    table[misspelt] = table.pop(key)


def replace_value(document: dict[str, Any], rng: random.Random) -> None:
    path = rng.choice(paths(document))
    holder(document, path)[path[-1]] = rng.choice(ODDITIES)


def drop(document: dict[str, Any], rng: random.Random) -> None:
    path = rng.choice(paths(document))
    del holder(document, path)[path[-1]]


def check(text: str | bytes, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """The status of a run with this text; asserts what every user may expect of it."""
    path = Path("mutated.toml")
    path.write_bytes(text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text)
    found = status(["run", str(path), "--force", "--out", "out"])
    err = capsys.readouterr().err
    assert found in (0, 2), (err, text)
    assert "Traceback" not in err
    assert "unexpected failure" not in err, text
    if found == 2:
        assert err.startswith("tokensphere: ")
        assert err.count("\n") == 1
        assert not any(ord(c) < 32 for c in err.rstrip("\n"))
    return found, err


@pytest.mark.parametrize("document", DOCUMENTS, ids=["density", "joint"])
def test_the_documents_themselves_are_accepted(document: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(document, capsys)[0] == 0


@pytest.mark.parametrize("document", DOCUMENTS, ids=["density", "joint"])
def test_every_misspelt_key_is_refused_by_name(document: str, capsys: pytest.CaptureFixture[str]) -> None:
    for seed in range(120):
        mutated = tomllib.loads(document)
        misspell(mutated, random.Random(seed))
        found, err = check(toml(mutated), capsys)
        assert found == 2
        assert "is not a known key" in err, err


@pytest.mark.parametrize("document", DOCUMENTS, ids=["density", "joint"])
def test_no_mutation_of_values_ends_in_a_traceback(document: str, capsys: pytest.CaptureFixture[str]) -> None:
    for seed in range(130):
        rng = random.Random(seed)
        mutated = tomllib.loads(document)
        for mutate in rng.choices([replace_value, drop], k=rng.randint(1, 3)):
            mutate(mutated, rng)
        check(toml(mutated), capsys)


def test_torn_and_scrambled_files_end_in_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    for seed in range(60):
        rng = random.Random(seed)
        content = bytearray(rng.choice(DOCUMENTS).encode())
        for _ in range(rng.randint(1, 6)):
            content[rng.randrange(len(content))] = rng.randrange(256)
        check(bytes(content[: rng.randint(1, len(content))]), capsys)


values = st.recursive(
    st.one_of(st.booleans(), st.integers(-(10**20), 64), st.floats(), st.text(max_size=8)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=6), inner, max_size=3)),
    max_leaves=6,
)
KEYS = sorted(
    {".".join(str(part) for part in path) for document in DOCUMENTS for path in paths(tomllib.loads(document))}
)


@settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(key=st.sampled_from(KEYS), value=values, number=st.integers(0, 1))
def test_any_value_of_any_key_is_accepted_as_it_is_or_refused(key: str, value: Any, number: int) -> None:
    document = tomllib.loads(DOCUMENTS[number])
    try:
        raw = apply_settings(document, [f"{key}={toml({'v': value}).removeprefix('v = ').strip()}"])
        config = parse(raw)
    except InputError:
        return
    again = parse(tomllib.loads(to_toml(config)))
    assert again == config
    assert json.dumps(config.model_dump(mode="json"))
