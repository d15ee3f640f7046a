"""Configurations: what is accepted reads back as the same, and what is not costs one sentence with the remedy."""

import itertools
import math
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tokensphere.config import Config, apply_settings, load, parse, to_toml
from tokensphere.config.building import build_attention, build_initial, build_joint_initial, build_kernel, build_labels
from tokensphere.config.building import build_mesh as mesh_of
from tokensphere.meshes.errors import InputError
from tokensphere.pde.attention import SingularError

SPHERE = """
[mesh]
kind = "healpix"
nside = 4
[attention]
beta = 50
value = [[1.0, 0.0, 0.0], [0.0, 0.3, 0.0], [0.0, 0.0, -0.5]]
[initial]
kind = "mixture"
[[initial.components]]
kind = "uniform"
weight = 1
[[initial.components]]
kind = "von_mises_fisher"
weight = 2.0
mean = [0.0, 0.0, 1.0]
concentration = 4.0
[[initial.components]]
kind = "polynomial"
weight = 1.0
linear = [0.1, 0.3, 0.4]
quadratic = "identity"
[time]
end = 10.0
"""

JOINT = """
[mesh]
kind = "healpix"
nside = 2
[labels]
kind = "circle"
count = 8
[kernel]
kind = "rope"
frequency = 1.0
profile = "exponential"
beta = 2.0
factor = "1/beta"
[initial]
kind = "uniform"
perturbation = 0.1
seed = 7
[time]
end = 1.0
saves = 3
"""


def tables(text: str, *settings: str) -> dict[str, Any]:
    return apply_settings(tomllib.loads(text), list(settings))


def refusal(text: str, *settings: str) -> str:
    with pytest.raises(InputError) as raised:
        parse(tables(text, *settings))
    sentence = str(raised.value)
    assert sentence.endswith(".")
    assert "\n" not in sentence
    return sentence


@pytest.mark.parametrize("text", [SPHERE, JOINT])
def test_resolved_configuration_reads_back_as_the_same(text: str) -> None:
    config = parse(tomllib.loads(text))
    assert parse(tomllib.loads(to_toml(config))) == config


def test_toml_survives_every_kind_of_value() -> None:
    from tokensphere.config.writing import toml

    document = {
        "a": {"x": math.inf, "y": -1e-300, "text": 'quote " back \\ slash \x7f é', "b": {"list": [[1, 2], []]}},
        "c": [{"k": True, "inline": [{"z": 1}]}],
        "odd key.": 3,
    }
    assert tomllib.loads(toml(document)) == document


def test_design_example_is_accepted_and_defaults_are_filled_in() -> None:
    config = load(Path(__file__).parents[1] / "examples" / "concentration.toml")
    assert config.mesh.kind == "healpix"
    assert config.attention is not None
    assert (config.attention.query, config.attention.normalised) == ("identity", True)
    assert len(config.save_times) == 21


def test_every_example_is_accepted() -> None:
    examples = sorted((Path(__file__).parents[1] / "examples").glob("*.toml"))
    assert len(examples) >= 3
    for example in examples:
        load(example)


def test_save_times_are_exact_at_awkward_ends() -> None:
    for end in (0.1, 1 / 3, 2.7, 10.0, 1e-9):
        for saves in (1, 3, 7, 20):
            times = parse(tables(SPHERE, f"time.end={end}", f"time.saves={saves}")).save_times
            assert times[0] == 0.0
            assert times[-1] == end
            assert len(times) == saves + 1
            assert all(b > a for a, b in itertools.pairwise(times))


@pytest.mark.parametrize(
    ("setting", "guess"),
    [
        ("attention.bata=3", "beta"),
        ("mesh.nsid=8", "nside"),
        ("messh.nside=8", "mesh"),
        ("nside=8", "mesh.nside"),
        ("initial.components.1.concetration=3", "concentration"),
        ("initial.components.2.linaer=[1,2,3]", "linear"),
        ("time.save=3", "saves"),
        ("solver.metod=auto", "method"),
        ("mesh.kind=healpx", "healpix"),
        ("solver.method=spectrall", "spectral"),
        ("initial.components.0.kind=unifrom", "uniform"),
        ("sweep.ovre={}", "over"),
    ],
)
def test_misspelt_key_or_word_at_any_depth_gets_a_suggestion(setting: str, guess: str) -> None:
    assert f"did you mean {guess}?" in refusal(SPHERE, setting)


def test_misspelt_key_in_a_joint_configuration_gets_a_suggestion() -> None:
    assert "did you mean frequency?" in refusal(JOINT, "kernel.frequancy=2")
    assert "did you mean perturbation?" in refusal(JOINT, "initial.pertubation=0.1")


@pytest.mark.parametrize("order", ["rign", "NESTED", "nest", ""])
def test_misspelt_pixel_order_is_refused_with_the_allowed_ones(order: str) -> None:
    sentence = refusal(SPHERE, f'initial={{kind="healpix_map", path="a.fits", order="{order}"}}')
    assert '"ring", "nested"' in sentence


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("mesh.nside=12", "power of two"),
        ("mesh.nside=1024", "power of two from 1 to 512"),
        ("mesh.nside=8.0", "whole number"),
        ("mesh.nside=true", "whole number"),
        ("attention.beta=nan", "above 0"),
        ("attention.beta=0", "above 0"),
        ("attention.beta=-3", "above 0"),
        ("attention.beta=hot", "a number"),
        ("attention.value=[[1,0],[0,1]]", "needs 3x3"),
        ("attention.value=[[1,0,0],[0,1],[0,0,1]]", "same length"),
        ("attention.value=[[1,0,0],[0,nan,0],[0,0,1]]", "finite numbers"),
        ("attention.value=[]", "identity"),
        ("attention.query=[[1,0,0]]", "different numbers of rows"),
        ("initial={kind='polynomial', linear=[1, 2]}", "needs 3"),
        ("initial={kind='mixture', components=[]}", "more entries"),
        ("time.end=0", "above 0"),
        ("time.end=-1", "above 0"),
        ("time.end=inf", "finite"),
        ("time.saves=0", "whole number from 1"),
        ("time=3", "a table"),
        ("labels={kind='circle', count=3}", "[kernel]"),
        ("initial.perturbation=0.1", "joint law"),
        ("solver.method=log-safe", "auto, direct"),
    ],
)
def test_values_out_of_bounds_are_refused_with_what_is_allowed(setting: str, words: str) -> None:
    assert words in refusal(SPHERE, setting)


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("kernel.profile=linear", "leave it out"),
        ("kernel.factor=2", "1/beta"),
        ("kernel={kind='prefix', beta=1.0}", "matrices is missing"),
        ("labels.count=0", "from 1"),
        ("labels={kind='finite', weights=[1, 0]}", "above 0"),
        ("attention={beta=1.0, value='identity'}", "one of them"),
        ("initial.perturbation=1.0", "below 1"),
    ],
)
def test_joint_values_out_of_bounds_are_refused(setting: str, words: str) -> None:
    assert words in refusal(JOINT, setting)


def test_settings_reach_every_depth_and_keep_bare_words_and_short_numbers() -> None:
    document = tables(
        SPHERE, "attention.beta=inf", "initial.components.1.mean=[1,0,0]", "solver.method=direct", "time.end=.5"
    )
    assert document["attention"]["beta"] == math.inf
    assert document["initial"]["components"][1]["mean"] == [1, 0, 0]
    assert (document["solver"]["method"], document["time"]["end"]) == ("direct", 0.5)


@pytest.mark.parametrize(
    "setting", ["attention.beta", "=3", "attention..beta=3", "attention.beta.x=3", "initial.components=1"]
)
def test_settings_that_are_none_are_refused(setting: str) -> None:
    with pytest.raises(InputError):
        parse(tables(SPHERE, setting))


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"mesh = [", "not valid TOML"), (b"\xff\xfe", "UTF-8"), (b"[" * 5000, "TOML"), (b"a = " + b"[" * 3000, "TOML")],
)
def test_files_that_are_not_toml_cost_one_sentence(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "broken.toml"
    path.write_bytes(content)
    with pytest.raises(InputError, match=words):
        load(path)
    with pytest.raises(InputError, match="does not exist"):
        load(tmp_path / "none.toml")
    with pytest.raises(InputError, match="cannot be read"):
        load(tmp_path)


def test_configuration_becomes_the_objects_it_names() -> None:
    config = parse(tables(SPHERE))
    mesh = mesh_of(config.mesh)
    assert config.attention is not None
    attention = build_attention(config.attention, 3)
    assert np.array_equal(attention.B, np.eye(3))
    assert attention.beta == 50.0
    density = build_initial(config.initial, mesh)
    assert density @ mesh.areas == pytest.approx(1.0, abs=1e-14)
    # by weights 1 : 2 : 1, each part of mass 1; the mean of a von Mises-Fisher law is coth k - 1/k, the mean of
    # 1 + <a, x> + <x, x> = 2 + <a, x> is a/6
    expected = 0.5 * (1 / np.tanh(4) - 1 / 4) * np.array([0, 0, 1.0]) + 0.25 * np.array([0.1, 0.3, 0.4]) / 6
    assert np.allclose(density @ (mesh.areas[:, None] * mesh.centers), expected, atol=0.02)


def test_singular_interaction_is_refused() -> None:
    config = parse(tables(SPHERE, "attention.query=[[1,0,0],[0,1,0],[0,0,0]]"))
    assert config.attention is not None
    with pytest.raises(SingularError, match="singular"):
        build_attention(config.attention, 3)


def test_joint_start_has_unit_slices_and_depends_on_the_seed_alone() -> None:
    def start(*settings: str) -> np.ndarray:
        config = parse(tables(JOINT, *settings))
        assert config.labels is not None
        return build_joint_initial(config.initial, mesh_of(config.mesh), build_labels(config.labels))

    mesh = mesh_of(parse(tables(JOINT)).mesh)
    first = start()
    assert first.shape == (8, mesh.cells)
    assert np.allclose(first @ mesh.areas, 1.0, atol=1e-14)
    assert np.array_equal(first, start())
    assert not np.array_equal(first, start("initial.seed=8"))
    assert np.ptp(first[0] * 4 * np.pi) > 0.1


@pytest.mark.parametrize(
    "kernel",
    [
        "{kind='usa', profile='linear'}",
        "{kind='generalised_rope', beta=1.0, generators=[[[0,-1,0],[1,0,0],[0,0,0]]]}",
        "{kind='distance_bias', beta=1.0, length=0.5}",
        "{kind='toeplitz', beta=1.0, factor=1, cosines=[[0, 0.6], [1, 1.0]]}",
    ],
)
def test_every_kernel_of_the_design_is_built(kernel: str) -> None:
    config = parse(tables(JOINT, f"kernel={kernel}"))
    assert config.kernel is not None
    assert config.labels is not None
    built = build_kernel(config.kernel, 3)
    assert built.mixing(build_labels(config.labels)).shape == (8, 8)


def test_prefix_kernel_needs_one_matrix_for_each_label() -> None:
    kernel = "kernel={kind='prefix', beta=1.0, matrices=['identity', [[1,0,0],[0,1,0],[0,0,-1]]]}"
    assert "2 matrices" in refusal(JOINT, kernel)
    config = parse(tables(JOINT, kernel, "labels={kind='finite', weights=[1, 3]}"))
    assert config.kernel is not None
    assert build_kernel(config.kernel, 3).is_gauge


def test_tokens_start_a_run_and_bad_rows_are_named(tmp_path: Path, write_config: Callable[..., Path]) -> None:
    rng = np.random.default_rng(1)
    tokens = rng.standard_normal((40, 3))
    tokens /= np.linalg.norm(tokens, axis=1, keepdims=True)
    np.savez(tmp_path / "tokens.npz", positions=np.stack([tokens, tokens[::-1]]))
    text = SPHERE.split("[initial]")[0] + '[initial]\nkind = "particles"\npath = "tokens.npz"\n[time]\nend = 1.0\n'
    config: Config = load(write_config(text, "particles"))
    mesh = mesh_of(config.mesh)
    density = build_initial(config.initial, mesh)
    assert density @ mesh.areas == pytest.approx(1.0, abs=1e-14)
    tokens[17, 1] = np.nan
    np.savez(tmp_path / "tokens.npz", positions=tokens)
    with pytest.raises(InputError, match="17"):
        build_initial(config.initial, mesh)
    np.savez(tmp_path / "tokens.npz", places=tokens)
    with pytest.raises(InputError, match="positions"):
        build_initial(config.initial, mesh)
