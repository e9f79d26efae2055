"""Mutated model files of every detector: a function of the case's number that loads one and asks it."""

import random
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.mutants import mutated

__all__ = ["models"]


def models() -> Callable[[int], None]:
    """Load a model of which one file was changed, and ask it about some jobs."""
    from tocsin.core.stages import Stage
    from tocsin.failure.detector import DETECTOR as FAILURE
    from tocsin.judge.check_data import demo_check_data
    from tocsin.models.cards import read_card
    from tocsin.models.engines import ENGINES, engine
    from tocsin.models.registry import Registry
    from tocsin.workload.panel import load_panel

    data = demo_check_data()
    asked, known = data.asked(Stage.SUBMIT).head(3), data.known()
    home = Path(tempfile.mkdtemp())
    failure, panel, registry = home / "failure", home / "panel", Registry(home / "models")
    failure.mkdir()
    panel.mkdir()
    data.fitted(FAILURE, Stage.SUBMIT).save(failure)
    _small_panel().save(panel, "own")
    documents = {path.name: path.read_bytes() for path in failure.iterdir()}
    panels = {path.name: path.read_bytes() for path in panel.iterdir()}
    boosters = _boosters(home)
    matrix = _matrix()

    def of_engine(number: int) -> None:
        name = list(boosters)[number % len(boosters)]
        path = home / "booster"
        path.write_bytes(mutated([boosters[name]], number))
        booster = engine(name).load(path)
        booster.predict(matrix[:5])
        booster.contributions(matrix[:2])

    def of_failure(number: int) -> None:
        name = random.Random(~number).choice(sorted(documents))
        try:
            (failure / name).write_bytes(mutated([documents[name]], number))
            fitted = FAILURE.load(failure)
            fitted.assess(asked, known, stage=Stage.SUBMIT)
            fitted.explain(asked.head(1), known, stage=Stage.SUBMIT)
        finally:
            (failure / name).write_bytes(documents[name])

    def of_panel(number: int) -> None:
        name = random.Random(~number).choice(sorted(panels))
        try:
            (panel / name).write_bytes(mutated([panels[name]], number))
            load_panel(panel, "own").probabilities(_scripts_for_panel())
        finally:
            (panel / name).write_bytes(panels[name])

    def of_registry(number: int) -> None:
        content = mutated(
            [_CARD, b'{"submit": {"*": {"champion": "1", "challenger": null, "previous": ["2"]}}}'], number
        )
        (registry.folder / "failure").mkdir(parents=True, exist_ok=True)
        (registry.folder / "failure" / "aliases.json").write_bytes(content)
        try:
            registry.champion("failure", Stage.SUBMIT)
        finally:
            read_card(content, "card.json")

    assert set(boosters) <= set(ENGINES)
    of_traces = _traces(home / "traces")
    shares = [of_engine] * 4 + [of_failure] * 2 + [of_panel] * 2 + [of_registry] + [of_traces]
    return lambda number: shares[number % len(shares)](number)


def _traces(folder: Path) -> Callable[[int], None]:
    """An autoencoder of CPUs whose weights are random, in a folder as it is saved."""
    import numpy as np
    from tests.kits.traces import windows

    from tocsin.core.channels import CPU_CHANNELS
    from tocsin.traces.architecture import Architecture
    from tocsin.traces.onnx_model import OnnxModel, load_model
    from tocsin.traces.scaling import Scaling

    design, chance = Architecture("vanilla", 24, CPU_CHANNELS), np.random.default_rng(4)
    weights = {
        name: chance.normal(0, 0.1, shape).astype(np.float32) for name, shape in design.parameters().items()
    }
    ones, asked = np.ones(len(CPU_CHANNELS), dtype=np.float32), windows(1, instants=2, length=24)
    folder.mkdir()
    OnnxModel(design, [weights], [0], None if design.shares else Scaling(ones, ones)).save(folder)
    whole = {path.name: path.read_bytes() for path in folder.iterdir()}

    def read(number: int) -> None:
        name = random.Random(~number).choice(sorted(whole))
        try:
            (folder / name).write_bytes(mutated([whole[name]], number))
            load_model(folder).score(asked)
        finally:
            (folder / name).write_bytes(whole[name])

    return read


_CARD = b'{"schema": 2, "detector": "failure", "stage": "submit", "engine": "lightgbm", "created": "2026-01-01T00:00:00Z", "files": {"a": "b"}}'


def _matrix() -> Any:
    import numpy as np

    matrix = np.random.default_rng(1).normal(size=(300, 6)).astype(np.float32)
    matrix[::7, 2] = np.nan
    return matrix


def _boosters(home: Path) -> dict[str, bytes]:
    """A small model of each engine that is installed."""
    from tocsin.core.errors import ModelError
    from tocsin.models.engines import ENGINES, engine

    matrix, found = _matrix(), {}
    labels = (matrix[:, 0] > 0).astype(float)
    for name in ENGINES:
        try:
            engine(name).train(matrix, labels, rounds=4).save(home / "booster")
        except ModelError:  # an extra that is not installed
            continue
        found[name] = (home / "booster").read_bytes()
    return found


def _small_panel() -> Any:
    import numpy as np

    from tocsin.workload import keywords
    from tocsin.workload.encoders import Lexical
    from tocsin.workload.lexical import BITS
    from tocsin.workload.panel import Panel
    from tocsin.workload.vocabulary import Vocabulary

    keys = np.sort(np.random.default_rng(2).integers(0, 1 << BITS, 200).astype(np.uint64))
    weights = np.asfortranarray(
        np.random.default_rng(3).normal(size=(200 + keywords.columns(), 1)).astype(np.float32)
    )
    encoder = Lexical(Vocabulary(keys), np.ones(200, dtype=np.float32))
    return Panel(encoder, ("own",), weights, np.zeros(1, dtype=np.float32), ())


def _scripts_for_panel() -> Any:
    from tocsin.workload.normal import commands

    return [commands("#!/bin/bash\npython train.py --epochs 9\n")]
