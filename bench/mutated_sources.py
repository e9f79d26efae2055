"""Mutated scripts, and what `import`, `traces import` and `watch` read: each is one function of the case's number."""

import gzip
import json
import random
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.mutants import LARGEST, mutated

__all__ = ["scripts", "sources"]

_FIXTURES = Path(__file__).parents[1] / "tests" / "sources" / "fixtures"


def scripts() -> Callable[[int], None]:
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


def sources() -> Callable[[int], None]:
    """Read a file as `import` does, whatever its format is, or what slurmrestd and scontrol answer, as `watch` does."""
    readers = (_files(), _replies(), _machines(), _traces())
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


def _traces() -> Callable[[int], None]:
    """Samples in Parquet and .npz files, and the folder of a campaign of which one file is changed."""
    import numpy as np
    import polars as pl

    from tocsin.core.frames import CPU_SAMPLES
    from tocsin.sources.trace_files import TraceFiles
    from tocsin.traces.campaigns import read_campaign
    from tocsin.traces.simulation import SimulationPlan, simulate

    folder = Path(tempfile.mkdtemp())
    campaign = folder / "campaign"
    simulate(campaign, SimulationPlan(nodes=1, cpus=2, seconds=200))
    whole = {path.name: path.read_bytes() for path in campaign.iterdir()}
    samples = pl.DataFrame([("n1", 0, at, "7", 0.5, 0.1, 0.0) for at in range(90)], CPU_SAMPLES, orient="row")
    samples.write_parquet(folder / "x.parquet")
    np.savez(
        folder / "x.npz",
        node=np.array("n1"),
        job=np.array(["7", "8"]),
        at=np.array([5, 6]),
        memory=np.ones(2),
    )
    single = {path.name: path.read_bytes() for path in folder.glob("x.*")}

    def read(number: int) -> None:
        chance = random.Random(~number)
        if (
            chance.random() < 0.9
        ):  # a campaign takes a second: each of its files is tried in a process of its own
            name = chance.choice(sorted(single))
            (folder / name).write_bytes(mutated([single[name]], number))
            list(TraceFiles(folder / name).batches(-1, 10**6))
            return
        name = chance.choice(sorted(whole))
        try:
            (campaign / name).write_bytes(mutated([whole[name]], number))
            _all_of((lambda: list(TraceFiles(campaign).batches(-1, 2**40)), lambda: read_campaign(campaign)))
        finally:
            (campaign / name).write_bytes(whole[name])

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
    return json.dumps(document).encode()[:LARGEST]
