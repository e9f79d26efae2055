"""Of all that an output says, the root cause is named, and passing remarks are not."""

import json
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.causes.catalogue import load_catalogue
from tocsin.causes.matching import find_matches, root_cause

CATALOGUE = load_catalogue()
OUTPUTS = Path(__file__).parents[2] / "bench" / "outputs"


def cause(text: str) -> str | None:
    found = root_cause(find_matches(text, CATALOGUE))
    return found.rule.kind if found else None


def test_last_words_above_the_launchers_report_count() -> None:
    report = "".join(
        f"Rank {n} application called MPI_Abort(MPI_COMM_WORLD, 6) - process {n}\n" for n in range(9)
    )
    words = "grid::Error::0::cannot have both !!!\n"
    assert cause("step 1\n" + words + report) == "program_error"
    assert cause(words + "step 1\n" * 3 + report) == "mpi"
    assert cause(report) == "mpi"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (
            "Traceback (most recent call last):\n  File \"t.py\", line 3, in <module>\n"
            "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB\n",
            "cuda_memory",
        ),
        (
            "[n1:1] Signal: Segmentation fault (11)\nMPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD\n",
            "segfault",
        ),
        ("slurmstepd: error: Detected 1 oom-kill event(s) in step 7.batch cgroup.\nKilled\n", "memory"),
        ("Killed\nslurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-01-01T00:00:00 DUE TO TIME LIMIT ***\n", "walltime"),
        ("srun: error: n1: task 0: Exited with exit code 1\nsrun: Terminating StepId=7.0\n", None),
        ("torch.cuda.OutOfMemoryError: CUDA out of memory.\nsrun: error: n1: task 0: Exited with exit code 1\n", "cuda_memory"),
        ("ImportError: libcudart.so.11.0: cannot open shared object file: No such file or directory\n", "missing_library"),
        ("OSError: [Errno 28] No space left on device\nBroken pipe\n", "disk"),
        ("all is well\n", None),
        ("", None),
    ],
)  # fmt: skip
def test_the_root_wins_over_what_follows_from_it(text: str, kind: str | None) -> None:
    assert cause(text) == kind


@pytest.mark.parametrize(
    "text",
    [
        "out of memory, retrying with half the batch\nepoch 3 done\n",
        "WARNING: cache file not found: No such file or directory\nresult 42\n",
        "cat: old.log: No such file or directory\n" + "".join(f"step {i}\n" for i in range(80)),
        "Connection refused\ncalculation completed successfully\n",
        "Connection refused\ncalculation completed successfully",
        "rm: cannot remove 'x': No such file or directory\n",
        "mean absolute error: 0.11\nno errors found\n",
        "Maximum velocity error:  0.50E-02 on mesh 1\nprojection errors = 1.5e-05, 2 passes\n",
        "ImportError: no extension, the slow one is used\n" + "".join(f"step {i}\n" for i in range(600)),
    ],
)
def test_a_remark_in_passing_is_no_cause(text: str) -> None:
    assert cause(text) is None


def test_a_line_that_is_certain_counts_wherever_it_is() -> None:
    text = "java.lang.OutOfMemoryError: Java heap space\n" + "".join(f"retry {i}\n" for i in range(500))
    assert cause(text) == "memory"


def test_the_evidence_is_the_line_without_colours_cut_to_a_length() -> None:
    match = root_cause(find_matches(f"x\n\x1b[31mMemoryError: {'y' * 900}\x1b[0m\n", CATALOGUE))
    assert match is not None
    assert match.line == 1
    assert match.text.startswith("MemoryError: yyy")
    assert len(match.text) == 300


def test_progress_bars_and_prefixes_of_ranks_do_not_hide_a_line() -> None:
    assert cause("10%\r20%\rKeyError: 'loss'\n") == "python_exception"
    assert cause("[rank3]: ValueError: bad shape\n") == "python_exception"
    assert cause("7: ModuleNotFoundError: No module named 'x'\n") == "missing_package"


@given(st.binary(max_size=2000))
def test_any_bytes_are_read(content: bytes) -> None:
    for match in find_matches(content.decode("utf-8", errors="replace"), CATALOGUE):
        assert match.line >= 0


def test_the_work_on_a_hostile_text_ends_at_the_deadline() -> None:
    ticks = iter(range(10**9))
    text = "error " * 200_000 + "\n" + "a" * 300_000
    find_matches(text, CATALOGUE, clock=lambda: float(next(ticks)))
    assert next(ticks) < 10, "it went on after its deadline"


def test_cut_and_mixed_outputs_never_raise() -> None:
    texts = [
        json.loads(line)["text"]
        for path in sorted(OUTPUTS.glob("*.jsonl"))
        for line in path.read_text().splitlines()
    ]
    numbers = random.Random(3)
    for _ in range(200):
        one, other = numbers.choices(texts, k=2)
        cause(one[numbers.randrange(len(one) + 1) :] + other[: numbers.randrange(len(other) + 1)])


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("assembling\ninternal error 3 in the load balancer\n", "program_error"),
        ("internal trouble, error 3\n" + "".join(f"step {i}\n" for i in range(5)), None),
        ("0:solve: too many neighbours, error 3\nMPI_ABORT was invoked on rank 0 in communicator MPI_COMM_WORLD\n", "program_error"),
        ("error 3\nslurm_script: line 2: 7 Segmentation fault ./solve\n", "segfault"),
    ],
)  # fmt: skip
def test_an_unspecific_error_counts_as_the_last_word_only(text: str, kind: str | None) -> None:
    assert cause(text) == kind


RANKS = "".join(f"step {i}\n" for i in range(200))
STACK = 'Traceback (most recent call last):\n  File "t.py", line 3, in <module>\n    run()\n'


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (f"{STACK}pkg.sub.Unheard: it did not work\n", "python_exception"),
        ("[rank0]: " + STACK.replace("\n", "\n[rank0]: ") + "KeyError: 'a'\n", "python_exception"),
        (f"{STACK}OSError: [Errno 122] x\n", "disk"),
        ("Command exit status:\n  137\n", "killed"),
        ("Job 7 ended, Exit_status=265\n", "killed"),
        ("main.py exits with return code = -11\n", "segfault"),
    ],
)
def test_numbers_and_stacks_are_read_by_meaning(text: str, kind: str) -> None:
    assert cause(text) == kind


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (f"{STACK}KeyError: 'a'\nsrun: error: n1: task 1: Segmentation fault\n", "python_exception"),
        (f"srun: error: n1: task 1: Segmentation fault\n{STACK}KeyError: 'a'\n", "segfault"),
        (f"{STACK}KeyError: 'a'\n[E ProcessGroupNCCL.cpp:1] Watchdog caught collective operation timeout\n", "python_exception"),
        ("n1 NCCL WARN Error while creating shared memory\nRuntimeError: NCCL error in: x.cpp:1\n", "nccl"),
        ("RuntimeError: Socket Timeout\nn1:7:8 [0] NCCL WARN Net : Connect to n2 failed\n", "nccl"),
        ("RuntimeError: Socket Timeout\n" + "retired\n" * 20 + "n1:7:8 [0] NCCL WARN Net : Connect to n2 failed\n", "network"),
    ],
)  # fmt: skip
def test_of_several_ways_to_end_the_first_is_the_root(text: str, kind: str) -> None:
    assert cause(text) == kind


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("ERROR: the solver stopped. This may be caused by out of memory\n", "program_error"),
        ("ERROR: a worker is lost. There are potential root causes: (1) SIGKILL by the OOM killer\n", "program_error"),
        ("=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n=   EXIT CODE: 11\n", "segfault"),
        ("free(): invalid pointer\n", "abort"),
        ("--> FOAM FATAL ERROR:\nface 175 area does not match neighbour\nFOAM exiting\n", "program_error"),
        ("./run.sh: line 3: exit status 124\n", "walltime"),
        (f"ModuleNotFoundError: No module named 'extra'\n{RANKS}{STACK}KeyError: 'a'\n", "python_exception"),
        (f"java.lang.OutOfMemoryError: Java heap space\n{RANKS}{STACK}KeyError: 'a'\n", "memory"),
        ("[ERROR] [launch.py:321:sigkill_handler] ['python', 't.py'] exits with return code = 1\n", None),
        ("Unable to initialize backend 'tpu': libtpu.so: cannot open shared object file\n", None),
        ("FATAL:   exec /.singularity.d/run failed: a shared library is likely missing in the image\n", "missing_library"),
        ("ValueError: MPI support has not been built. If this is not expected, install MPI and reinstall the package to debug the build error.\n", "python_exception"),
        ("2026-01-01 12:00:00 [main] DEBUG x.y - ValueError: not tried\n", None),
        ("Could not find a matching workflow for the kit\n", "program_error"),
        ("Could not find /data/train.csv\n", "missing_file"),
        ("Speicherzugriffsfehler (Speicherabzug geschrieben)\n", "segfault"),
        ("tar: x: No queda espacio en el dispositivo\n", "disk"),
        ("bash: line 3: vasp_std: commande introuvable\n", "missing_command"),
        ("FATAL ERROR: Unable to access config file min.conf\nrun.sh: line 9: 219 Aborted (core dumped) namd2\n", "missing_file"),
        ("[blasr] started.\nAborted (core dumped)\n", "abort"),
        ("== Error == system call finished abnormally, err code: -6\n", "abort"),
        ("solver: stopped. This error can indicate a missing file.\nSTOP at main\n", "program_error"),
        ("all tokens of the licence are in use\n", "licence"),
        ("ERROR: out of memory in src/cuda/custom_allocator.cuh at line 436\n", "cuda_memory"),
        ("hisat-align died with signal 25 (XFSZ)\n", "disk"),
        ("ERROR: Command 'qsub -q debug run.sh' did not work\n", "program_error"),
        ("a.py:3: UserWarning:\n\nThe maximum number of steps reached its limit.\n", None),
        ("2026-01-01 12:00:00.1: W external/tsl/x.cc:69] failed call to cuInit: UNKNOWN ERROR (303)\n", None),
        ("writing /lustre/scratch/ann/errors.log\n", None),
        ("time limit: 24:00:00, walltime limit 86400\n", None),
        ("[0] MPI startup(): Intel(R) MPI Library, Version 2021.4\n", None),
        (" reading namelist domains\n", None),
        ("RCCL version 2.18.3+hip5.7\n", None),
        ("+ source /home/ann/venv/bin/activate\n+ ulimit -n 4096\n", None),
    ],
)  # fmt: skip
def test_what_a_line_means_decides(text: str, kind: str | None) -> None:
    assert cause(text) == kind
