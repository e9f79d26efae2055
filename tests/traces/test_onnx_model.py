"""A saved model answers as before; a file that was changed is refused and never run."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.kits.traces import counters, windows
from tocsin.core.channels import CPU_CHANNELS, MODES
from tocsin.core.errors import ModelError
from tocsin.traces.architecture import ARCHITECTURES, Architecture
from tocsin.traces.onnx_model import OnnxModel, load_model
from tocsin.traces.scaling import Scaling
from tocsin.traces.windows import Windows

pytestmark = pytest.mark.usefixtures("torch")


def untrained(
    architecture: str = "vanilla", length: int = 24, channels: tuple[str, ...] = CPU_CHANNELS, seed: int = 0
) -> OnnxModel:
    design = Architecture(architecture, length, channels)
    random = np.random.default_rng(seed)
    weights = {
        name: random.normal(0, 0.1, shape).astype(np.float32) for name, shape in design.parameters().items()
    }
    if design.shares:
        return OnnxModel(design, [weights], [0])
    ones = np.ones(len(channels), dtype=np.float32)
    return OnnxModel(design, [weights], [0], Scaling(ones, ones), ones)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("length", [3, 24, 25, 100])
def test_onnx_runtime_answers_as_pytorch_does(architecture: str, length: int) -> None:
    import torch

    from tocsin.traces.autoencoder import Autoencoder
    from tocsin.traces.batches import PaddedGraphs

    given = windows(1, instants=5, length=length)
    network = Autoencoder(Architecture(architecture, length, CPU_CHANNELS))
    model = OnnxModel(Architecture(architecture, length, CPU_CHANNELS), [network.weights()], [0])
    graphs = PaddedGraphs.of(given.graphs(by_job=architecture == "job_graph")) if model.design.graph else ()
    with torch.inference_mode():
        errors, embedding, reconstruction = network(*map(torch.from_numpy, (given.values, *graphs)))
    found = model.score(given)
    assert found.by_channel == pytest.approx(errors.numpy(), abs=1e-5)
    assert found.embedding == pytest.approx(embedding.numpy(), abs=1e-5)
    assert model.reconstruct(given).transpose(0, 2, 1) == pytest.approx(reconstruction.numpy(), abs=1e-5)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_other_is_reconstructed_but_never_an_input(architecture: str) -> None:
    model, given = untrained(architecture), windows(2, length=24)
    assert (model.channels, model.outputs) == (CPU_CHANNELS, MODES)
    found = model.reconstruct(given)
    assert found.shape == (len(given), 24, 4)
    assert found.sum(axis=2) == pytest.approx(np.ones(found.shape[:2]), abs=1e-5)
    target = np.dstack([given.values, 1 - given.values.sum(axis=2)])
    scores = model.score(given)
    assert scores.error == pytest.approx(((found - target) ** 2).mean(axis=(1, 2)), abs=1e-6)
    assert scores.error == pytest.approx(scores.by_channel.mean(axis=1))


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_permutation_of_cpus_permutes_the_answers(architecture: str) -> None:
    model, given = untrained(architecture), windows(2, cpus=7, length=24)
    order = np.random.default_rng(0).permutation(len(given))
    there, here = model.score(given[order]), model.score(given)
    assert there.error == pytest.approx(here.error[order], abs=1e-6)
    assert there.embedding == pytest.approx(here.embedding[order], abs=1e-5)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_graphs_may_have_any_size(architecture: str) -> None:
    model = untrained(architecture)
    for cpus in (1, 2, 33, 300):
        assert model.score(windows(2, cpus=cpus, instants=3, length=24)).error.shape == (3 * cpus,)
    assert model.score(windows(2, length=24)[:0]).embedding.shape == (0, 16)


@pytest.mark.parametrize("architecture", ["node_graph", "job_graph"])
def test_a_cpu_hears_its_neighbours_and_nobody_else(architecture: str) -> None:
    model = untrained(architecture)
    given = windows(2, kinds=("fit", "mpi"), instants=2, length=24)
    before = model.score(given).embedding
    values = given.values.copy()
    values[0] = windows(3, kinds=("bad_io",), length=24).values[0]
    changed = np.abs(model.score(Windows(values, given.index)).embedding - before).max(axis=1)
    heard = {0, 1, 2, 3} if architecture == "node_graph" else {0, 2}  # CPUs 0 and 2 have the same job
    assert set(np.flatnonzero(changed > 1e-5)) == heard


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_values_that_are_not_numbers_give_finite_answers(architecture: str) -> None:
    given = windows(2, length=24)
    values = given.values.copy()
    values[0, :, 0] = np.nan
    values[1, 3] = np.inf
    assert np.isfinite(untrained(architecture).score(Windows(values, given.index)).error).all()


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_loaded_model_gives_the_same_bits(architecture: str, tmp_path: Path) -> None:
    model, given = untrained(architecture), windows(1, length=24)
    model.save(tmp_path)
    again = load_model(tmp_path)
    assert (again.architecture, again.length, again.channels) == (architecture, 24, model.channels)
    for before, after in zip(model.score(given), again.score(given), strict=True):
        assert np.array_equal(before, after)
    assert {path.suffix for path in tmp_path.iterdir()} == {".onnx", ".json"}


def test_an_ensemble_answers_with_the_mean_of_its_members(tmp_path: Path) -> None:
    given, first, second = windows(1, length=24), untrained(seed=1), untrained(seed=2)
    both = OnnxModel(first.design, [*first.members, *second.members], [1, 2])
    both.save(tmp_path)
    found = load_model(tmp_path)
    assert found.score(given).error == pytest.approx(
        (first.score(given).error + second.score(given).error) / 2
    )
    assert found.reconstruct(given) == pytest.approx(
        (first.reconstruct(given) + second.reconstruct(given)) / 2, abs=1e-6
    )
    assert np.array_equal(found.score(given).embedding, first.score(given).embedding)


def test_a_loaded_model_of_counters_gives_the_same_bits(tmp_path: Path) -> None:
    given = counters(1, length=24)
    model = untrained(channels=tuple(given.channels))
    model.save(tmp_path)
    assert np.array_equal(load_model(tmp_path).reconstruct(given), model.reconstruct(given))


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    untrained("node_graph", 8).save(tmp_path)
    path = tmp_path / "member-0.onnx"
    content, random, refused = path.read_bytes(), np.random.default_rng(0), 0
    for case in range(120):
        changed = bytearray(content)
        if case % 2:
            # Most bytes are weights, and any finite weight is a weight: aim at the rest as well.
            first = 4000 if case % 4 == 1 else len(content)
            for place in random.integers(0, first, 3):
                changed[place] = random.integers(0, 256)
        else:
            del changed[int(random.integers(0, len(content))) :]
        path.write_bytes(changed)
        try:
            load_model(tmp_path).score(windows(1, instants=2, length=8))
        except ModelError as error:
            refused += 1
            assert str(error)
    assert refused >= 75


def _operator(model: Any) -> None:
    model.graph.node[0].op_type = "Loop"


def _domain(model: Any) -> None:
    model.graph.node[0].domain = "com.example"


def _external(model: Any) -> None:
    tensor = model.graph.initializer[0]
    tensor.data_location = 1
    entry = tensor.external_data.add()
    entry.key, entry.value = "location", "/etc/passwd"


def _function(model: Any) -> None:
    model.functions.add().name = "f"


def _not_finite(model: Any) -> None:
    tensor = model.graph.initializer[0]
    tensor.raw_data = np.full(tensor.dims, np.nan, dtype=np.float32).tobytes()


def _shape(model: Any) -> None:
    model.graph.initializer[0].dims[0] = 1 << 40


@pytest.mark.parametrize("change", [_operator, _domain, _external, _function, _not_finite, _shape])
def test_another_graph_is_refused(change: Any, tmp_path: Path) -> None:
    import onnx

    untrained().save(tmp_path)
    path = tmp_path / "member-0.onnx"
    model = onnx.load_model_from_string(path.read_bytes())
    change(model)
    path.write_bytes(model.SerializeToString())
    with pytest.raises(ModelError, match=r"member-0\.onnx"):
        load_model(tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        {"length": 10**9},
        {"length": 24.0},
        {"length": 32},
        {"embedding": 8},
        {"embedding": -1},
        {"architecture": "job_graph"},
        {"architecture": "../../x"},
        {"channels": []},
        {"channels": "user"},
        {"channels": ["user"]},
        {"outputs": ["user"]},
        {"seeds": []},
        {"seeds": [0, 1]},
        {"seeds": [0] * 1000},
        {"seeds": ["0"]},
        {"scale": [1.0, 1.0, 1.0]},
        {"version": 2},
    ],
)
def test_a_description_that_does_not_fit_is_refused(change: dict[str, Any], tmp_path: Path) -> None:
    untrained().save(tmp_path)
    path = tmp_path / "model.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(ModelError):
        load_model(tmp_path)


@pytest.mark.parametrize("name", ["centre", "scale", "normal"])
@pytest.mark.parametrize("value", [None, [], [1.0], [1e300] * 13, ["1"] * 13, [True] * 13, "x"])
def test_scales_that_are_no_numbers_are_refused(name: str, value: Any, tmp_path: Path) -> None:
    untrained(channels=tuple(counters(1).channels)).save(tmp_path)
    path = tmp_path / "model.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {name: value}))
    with pytest.raises(ModelError, match=r"model\.json"):
        load_model(tmp_path)


def test_missing_files_and_links_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="missing"):
        load_model(tmp_path)
    untrained().save(tmp_path)
    (tmp_path / "member-0.onnx").rename(tmp_path / "elsewhere")
    (tmp_path / "member-0.onnx").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ModelError, match=r"member-0\.onnx"):
        load_model(tmp_path)


def test_weights_that_overflow_are_an_error_and_no_answer() -> None:
    model = untrained()
    for name in ("hidden", "embedding"):
        model.members[0][f"encoder.{name}.weight"][:] = 3e38
    with pytest.raises(ModelError, match="not finite"):
        model.score(windows(1, length=24))


def test_a_missing_runtime_is_named_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ModelError, match=r"pip install 'tocsin\[traces\]'"):
        untrained().score(windows(1, length=24))
