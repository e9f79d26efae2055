"""Mutated scripts, model files and source files: none may end in an exception, a crash or a second of work.

Child processes read them, so that a crash costs one of them; `python -m bench.mutations KIND FIRST COUNT` is a child.
Cases are seeded by their number: a reported one can be repeated alone.
"""

import gzip
import json
import os
import random
import re
import select
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

__all__ = ["KINDS", "mutated", "run", "survey"]

CASES = 10_000
SECONDS = 1.0
_PATIENCE = 60.0  # wall-clock seconds for one case, on a machine that others use, too
_PREPARATION = 900.0  # the same for what a child does before its first case
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1"}  # cases are small
_LARGEST = 200_000
_FIXTURES = Path(__file__).parents[1] / "tests" / "sources" / "fixtures"
_WORDS = (
    b'nan -nan inf 1e400 -1 0 1_0 0x10 99999999999999999999 2147483648 -2147483649 true null [] {} "" \' " ` \\ $( ${ )) '
    b"<<EOF |bash &&eval ; # % %s {0} .. / -- = == \\x00 \\u0000 UNLIMITED INFINITE NONE Unknown 1-00:00:00 "
    b"16777215-99:99:99 9999999999G 10Gn node[1-99999] node[001-100000000] lab:1_2@3 2030-02-30T25:61:61 1970-01-01 Tree=0 "
    b"left_child=0 num_leaves=9999999 base64 -d curl|sh xmrig stratum+tcp:// #SBATCH #PBS #!/bin/sh JobID| PAR1"
).split(b" ")
_NUMBER = re.compile(rb"-?[0-9]+")
_NUMBERS = (b"0", b"1", b"2", b"-1", b"7", b"31", b"1000000", b"2147483647", b"99999999999", b"0.5")
_BYTES = (
    b"\x00",
    b"\xff",
    b"\x1b[2J",
    b"\x9b",
    b"\n",
    b"\r",
    b"\t",
    b"|",
    b",",
    b"\xe2\x80\xae",
    b"\xd9\xa1",
    b"\xed\xa0\x80",
)


def mutated(seeds: Sequence[bytes], number: int) -> bytes:
    """One of the seeds with one to five changes."""
    chance = random.Random(number)
    data = bytearray(chance.choice(seeds))
    for _ in range(chance.choice((1, 1, 1, 2, 5))):
        place = chance.randrange(len(data) + 1)
        length = min(chance.choice((1, 2, 8, 60, 1000)), max(1, len(data) - place))
        match chance.randrange(12):
            case 0:
                data[place : place + 1] = bytes([chance.randrange(256)])
            case 1:
                del data[place : place + length]
            case 2:
                data[place:place] = chance.choice(_WORDS)
            case 3:
                data[place:place] = chance.choice(_BYTES)
            case 4:
                data[place : place + length] = chance.choice(_WORDS)
            case 5:
                part = bytes(data[place : place + length])
                data[place:place] = part * chance.choice((1, 3, 100))
            case 6:
                other = chance.choice(seeds)
                start = chance.randrange(len(other) + 1)
                data[place:place] = other[start : start + length]
            case 7:
                data[place:place] = chance.choice(
                    (b"[", b"{", b"(", b'"', b"a.", b" ", b"9", b"$(")
                ) * chance.choice((10, 1000, 20_000))
            case 8:
                if chance.random() < 0.3:
                    del data[place:]
            case _:
                if found := _NUMBER.search(data, place):
                    data[found.start() : found.end()] = chance.choice(_NUMBERS)
        if len(data) > _LARGEST:
            del data[_LARGEST:]
    return bytes(data)


def _scripts() -> Callable[[int], None]:
    """Parse and classify a script, as `script`, `check` and `watch` do."""
    from tocsin.demo.cluster import DemoCluster
    from tocsin.scripts.script import parse, to_json
    from tocsin.workload.screening import builtin

    seeds = [text.encode() for text in dict(DemoCluster(seed=5, days=2).scripts()).values()][:200]
    seeds += [
        b"#!/bin/bash\n#SBATCH -N2 -n 8 --time=1-0 --mem=4G --array=1-9%2\nmodule load x\ncat <<E > a.sh\nxmrig -o p:3333\nE\nbash a.sh\n",
        b"#!/bin/sh\n#PBS -l nodes=2:ppn=8,walltime=01:00:00\necho eG1yaWc= | base64 -d | bash\n",
        b"#!/bin/bash\n#BSUB -n 4 -W 10 -R 'span[ptile=2]'\nfor i in $(seq 9); do ./a.out $i; done\nrm() { \"$@\"; }\nrm xmrig\n",
        b'#!/usr/bin/env python3\nimport os\nexec(bytes.fromhex("6f73"))\n#$ -pe mpi 4 -l h_rt=100\n',
    ]
    screener = builtin()

    def read(number: int) -> None:
        text = mutated(seeds, number).decode("utf-8", "surrogateescape")
        script = parse(text)
        to_json(script)
        screener.screen([text])

    return read


def _sources() -> Callable[[int], None]:
    """Read a file as `import` does, whatever its format is, or what slurmrestd and scontrol answer, as `watch` does."""
    readers = (_files(), _replies(), _machines())
    return lambda number: readers[number % len(readers)](number // len(readers))


def _files() -> Callable[[int], None]:
    import polars as pl

    from tocsin.core.intake import valid_batches
    from tocsin.core.job_json import to_json
    from tocsin.sources.formats import open_log

    swf = b"; UnixStartTime: 100\n" + b"\n".join(
        b"%d %d 5 100 4 90 1000 4 200 2000 1 7 1 3 1 1 -1 -1" % (number, number * 60)
        for number in range(1, 30)
    )
    seeds = [swf, *(_short(_unpacked(path)) for path in sorted(_FIXTURES.rglob("*")) if path.is_file())]
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "table"
        jobs = pl.DataFrame(
            {"jid": [f"jid_{n}" for n in range(50)], "adt": ["2024-01-01 00:00:00"] * 50, "usr": ["u"] * 50}
        )
        jobs.write_parquet(table)
        seeds += [table.read_bytes()] * 8
        jobs.write_csv(table)
        seeds += [table.read_bytes()] * 4
    path = Path(tempfile.mkdtemp()) / "log"

    def read(number: int) -> None:
        path.write_bytes(mutated(seeds, number))
        for batch in valid_batches(open_log(str(path), cluster="lab")):
            for row in batch.jobs.head(3).iter_rows(named=True):
                to_json(row)

    return read


def _replies() -> Callable[[int], None]:
    """One reply of slurmrestd is changed, the others are as recorded."""
    import httpx2
    from tests.kits import recordings

    from tocsin.core.intake import Rejects, valid_batches
    from tocsin.core.job_json import to_json
    from tocsin.sources.rest import SlurmRest
    from tocsin.sources.rest_accounting import RestAccounting
    from tocsin.sources.slurm_cluster import SlurmCluster
    from tocsin.sources.slurm_machine import machine_from_rest

    bodies = {
        "/" + path.name.removesuffix(".json.gz").replace("_", "/"): _short(_unpacked(path))
        for version in recordings.VERSIONS
        for path in (recordings.FOLDER / recordings.RELEASES[version]).glob(f"slurm*_{version}_*.json.gz")
    }

    def read(number: int) -> None:
        version = recordings.VERSIONS[number % len(recordings.VERSIONS)]
        paths = {f"/{family}/{version}/jobs": {} for family in ("slurm", "slurmdb")}
        own = {path: body for path, body in bodies.items() if f"/{version}/" in path}
        own["/openapi/v3"] = json.dumps({"paths": paths}).encode()
        changed = random.Random(~number).choice(sorted(own))
        own[changed] = mutated([own[changed]], number)

        def serve(request: httpx2.Request) -> httpx2.Response:
            body = own.get(request.url.path.rstrip("/"))
            return httpx2.Response(404) if body is None else httpx2.Response(200, content=body)

        with SlurmRest(
            "http://lab",
            user="root",
            token=lambda: "token",
            sleep=lambda _: None,
            transport=httpx2.MockTransport(serve),
        ) as rest:
            asked = (
                lambda: SlurmCluster("lab", rest=rest).queue(),
                lambda: rest.accounting(0, 100, rejects=Rejects()),
                lambda: [
                    to_json(row)
                    for batch in valid_batches(RestAccounting(rest, 0, 100, cluster="lab"))
                    for row in batch.jobs.head(3).iter_rows(named=True)
                ],
                lambda: machine_from_rest("lab", rest),
            )
            _all_of(asked)

    return read


def _machines() -> Callable[[int], None]:
    """One text of scontrol is changed, and a job is checked against the machine that it describes."""
    from tests.kits import recordings
    from tests.limits.examples import submitted

    from tocsin.sources.slurm_machine import machine_from_scontrol

    texts = {
        what: recordings.text(f"scontrol_{what}.txt").encode() for what in ("node", "partition", "config")
    }

    def read(number: int) -> None:
        changed = random.Random(~number).choice(sorted(texts))
        own = {**texts, changed: mutated([texts[changed]], number)}
        machine = machine_from_scontrol("lab", lambda argv: own.get(argv[-1], b""))
        submitted("-n 4 -N 2 --mem=9G --gres=gpu:1 -t 60", machine=machine)

    return read


def _all_of(questions: Sequence[Callable[[], object]]) -> None:
    """Ask all; an error that tocsin words itself is no reason to leave the others out."""
    from tocsin.core.errors import TocsinError

    refused = None
    for ask in questions:
        try:
            ask()
        except TocsinError as error:
            refused = error
    if refused:
        raise refused


def _models() -> Callable[[int], None]:
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
    shares = [of_engine] * 5 + [of_failure] * 2 + [of_panel] * 2 + [of_registry]
    return lambda number: shares[number % len(shares)](number)


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


def _unpacked(path: Path) -> bytes:
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


def _short(seed: bytes) -> bytes:
    """JSON with a few jobs, still whole; anything else cut."""
    try:
        document = json.loads(seed)
    except ValueError:
        return seed[:20_000]
    if isinstance(document, dict):
        document = {name: value[:3] if isinstance(value, list) else value for name, value in document.items()}
    return json.dumps(document).encode()[:_LARGEST]


KINDS = {"scripts": _scripts, "models": _models, "sources": _sources}


def _child(kind: str, first: int, count: int) -> None:
    """Write a line when all is prepared, and one after each case."""
    from tocsin.core.errors import TocsinError

    warnings.simplefilter("ignore")
    reports = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what libraries print is no report
    read = KINDS[kind]()
    print("ready", file=reports)
    for number in range(first, first + count):
        start, trouble = time.process_time(), ""
        try:
            read(number)
        except TocsinError:
            trouble = "refused"
        except BaseException as error:  # a panic of polars is no Exception
            trouble = f"{type(error).__name__}: {str(error)[:200]!r}"
        print(f"{time.process_time() - start:.4f} {trouble}", file=reports)


def survey(kind: str, first: int, count: int) -> dict[str, Any]:
    """Run the cases in child processes; what went wrong, by case."""
    wrong: dict[int, str] = {}
    slowest, slowest_case, refused, last = 0.0, None, 0, first + count
    while first < last:
        at = first
        for number, line in _lines(kind, first, last - first):
            at = number
            if line is None:
                wrong[number] = "crashed, or took more than a minute"
                continue
            seconds, _, trouble = line.partition(" ")
            if float(seconds) > slowest:
                slowest, slowest_case = float(seconds), number
            if float(seconds) > SECONDS:
                wrong[number] = f"took {float(seconds):.1f} s"
            refused += trouble == "refused"
            if trouble and trouble != "refused":
                wrong[number] = trouble
        first = at + 1
    return {
        "cases": count,
        "refused": refused,
        "exceptions": sum(not text.startswith(("crashed", "took")) for text in wrong.values()),
        "crashes": sum(text.startswith("crashed") for text in wrong.values()),
        "over_a_second": sum(text.startswith("took") for text in wrong.values()),
        "slowest_seconds": round(slowest, 3),
        "slowest_case": slowest_case,
        "wrong": {str(number): text for number, text in sorted(wrong.items())[:20]},
    }


def _lines(kind: str, first: int, count: int) -> Iterator[tuple[int, str | None]]:
    """What one child reports for each case; None for the case in which it died or was killed."""
    command = [sys.executable, "-m", "bench.mutations", kind, str(first), str(count)]
    child = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        bufsize=0,  # a line in a buffer is not seen by select
        cwd=Path(__file__).parents[1],
        env={**os.environ, **_ONE_THREAD},
    )
    assert child.stdout is not None
    try:
        if not _next_line(child, _PREPARATION):
            raise RuntimeError(f"could not prepare mutated {kind}; see the messages above")
        for number in range(first, first + count):
            line = _next_line(child, _PATIENCE)
            yield number, line or None
            if not line:
                return
    finally:
        child.kill()
        child.wait()
        child.stdout.close()


def _next_line(child: "subprocess.Popen[bytes]", patience: float) -> str:
    """Empty where the child ended or was silent for too long."""
    assert child.stdout is not None
    ready = select.select([child.stdout], [], [], patience)[0]
    return child.stdout.readline().decode().rstrip("\n") if ready else ""


def run(count: int = CASES) -> dict[str, Any]:
    found = {kind: survey(kind, 0, count) for kind in KINDS}
    total = {
        name: sum(result[name] for result in found.values())
        for name in ("cases", "exceptions", "crashes", "over_a_second")
    }
    return {
        **total,
        "slowest_seconds": max(result["slowest_seconds"] for result in found.values()),
        "kinds": found,
    }


if __name__ == "__main__":
    _child(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
