"""Child processes: the same results in the same order as from one process, and a clean end in any case."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from tests.kits.command_line import Tocsin
from tocsin.app import children, classify
from tocsin.app.children import map_in_children, start
from tocsin.core.errors import InputError, TocsinError


def square(number: int) -> tuple[int, int]:
    if number == 13:
        raise InputError("13 is refused")
    if number == 99:
        os._exit(9)  # as a child that the system kills
    return number * number, os.getpid()


def test_results_come_in_order_from_other_processes_and_few_chunks_are_out() -> None:
    taken: list[int] = []

    def chunks() -> Iterator[int]:
        for number in range(12):
            taken.append(number)
            yield number

    found = map_in_children(square, chunks(), 2)
    assert next(found)[0] == 0
    assert len(taken) <= 6  # of a million files not all are named at once
    rest = list(found)
    assert [value for value, _ in rest] == [number * number for number in range(1, 12)]
    assert os.getpid() not in {process for _, process in rest}


def report_priority(pipe: "Connection[Any, Any]") -> None:
    pipe.send(os.getpriority(os.PRIO_PROCESS, 0))


def test_a_child_for_work_in_the_background_gives_way_to_others() -> None:
    own = os.getpriority(os.PRIO_PROCESS, 0)
    for nice in (0, 3):
        child = start(report_priority, nice=nice)
        assert child.pipe.recv() == min(own + nice, 19)
        child.process.join()
        child.pipe.close()


def test_errors_and_deaths_of_children_are_reported() -> None:
    found = map_in_children(square, [1, 13, 2], 2)
    assert next(found)[0] == 1
    with pytest.raises(InputError, match="13 is refused"):
        next(found)
    with pytest.raises(TocsinError, match="one of 2 child processes died"):
        list(map_in_children(square, [1, 99, 2], 2))


@pytest.fixture
def scripts(tmp_path: Path) -> Path:
    folder = tmp_path / "scripts"
    folder.mkdir()
    texts = (
        "#!/bin/bash\n#SBATCH -n 4\nmodule load gromacs\nsrun gmx_mpi mdrun -deffnm md\n",
        "#!/bin/bash\nsource activate torch\npython train.py --epochs 20 --model resnet50 --gpus 4\n",
        "#!/bin/bash\nnohup ./gcc -o stratum+tcp://any.example:3333 -u me &\n",
        "\0",
    )
    for number in range(30):
        (folder / f"{number:02}.sh").write_text(texts[number % 4] + f"echo {number}\n" * (number % 4 < 3))
    return folder


def test_many_scripts_get_the_same_answers_bit_for_bit(
    tocsin: Tocsin, scripts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = tocsin("classify", scripts, "--jsonl")
    assert alone.code == 0
    assert len(alone.out.splitlines()) == 30
    monkeypatch.setattr(classify, "WORTH_CHILDREN", 20)
    monkeypatch.setattr(classify, "CHUNK", 4)
    monkeypatch.setattr(children, "cores", lambda: 2)
    shared = tocsin("classify", scripts, "--jsonl")
    assert (shared.code, shared.out, shared.err) == (alone.code, alone.out, alone.err)


def test_scripts_are_held_by_size_too(scripts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [str(path) for path in sorted(scripts.iterdir())]
    screener = classify._loaded(Path(classify.__file__).parents[1] / "workload" / "builtin" / "workload")
    whole = list(classify.rows_of(paths, screener, follow=False))
    monkeypatch.setattr(classify, "MOST_CHARACTERS", 100)
    assert list(classify.rows_of(paths, screener, follow=False)) == whole


@pytest.mark.parametrize(("how", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_an_interrupt_ends_all_without_a_traceback(tmp_path: Path, how: signal.Signals, code: int) -> None:
    """It waits for a pipe that nobody fills when it is stopped; the children end with it."""
    pipe, script = tmp_path / "pipe", tmp_path / "job.sh"
    os.mkfifo(pipe)
    script.write_text("srun ./a.out\n")
    # a test that runs in the background inherits an ignored interrupt
    small = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
    small += "from tocsin.app import children, classify; from tocsin.cli import main; "
    small += (
        "classify.WORTH_CHILDREN = classify.CHUNK = 2; children.cores = lambda: 2; main.run(sys.argv[1:])"
    )
    line = [sys.executable, "-c", small, "classify", "--jsonl", *[str(script)] * 4, str(pipe)]
    environment = os.environ | {"TOCSIN_HOME": str(tmp_path)}
    with subprocess.Popen(line, stdout=-1, stderr=-1, env=environment, start_new_session=True) as process:
        assert process.stdout
        assert process.stderr
        assert [json.loads(process.stdout.readline())["file"] for _ in range(4)] == [str(script)] * 4
        if how is signal.SIGINT:
            os.killpg(process.pid, how)  # a terminal's interrupt goes to all of them
        else:
            process.kill()
        assert process.wait(60) == code
        ends = time.monotonic() + 30
        while _alive(process.pid) and time.monotonic() < ends:
            if how is signal.SIGKILL:  # a child that waits for a file notices the end of its parent after it
                with suppress(OSError):  # no child waits for it, or not yet
                    os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))
            os.sched_yield()
        assert not _alive(process.pid)
        assert b"Traceback" not in process.stderr.read()


def _alive(session: int) -> bool:
    try:
        os.killpg(session, 0)
    except ProcessLookupError:
        return False
    return True
