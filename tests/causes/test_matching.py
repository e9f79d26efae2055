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


def test_calls_of_a_stack_and_folders_of_paths_are_no_statements() -> None:
    assert (
        cause("signal (6): Aborted\nuv_once at ./thread.c:239\ngetaddrinfo at ./socket.jl:591\n") == "abort"
    )
    assert (
        cause('Cannot run program "sbatch" (in directory "/lustre/ann/work"): error=2\n') == "missing_command"
    )
    assert cause("ERROR: read of /scratch/pmix/a.nc failed\n") != "mpi"
    assert cause("LustreError: 11-0: an operation failed with -107\n") == "node"


def test_an_exception_that_a_warning_reports_was_handled_if_the_output_goes_on() -> None:
    reported = "[W 2026-01-01 10:00:00,1] Trial 1 failed because of the following error: ValueError('x')\n"
    assert cause(f"{reported}{STACK}ValueError: x\n[I 2026-01-01 10:00:01,2] Trial 2 goes on\n") is None
    assert cause(f"{reported}{STACK}ValueError: x\n") == "python_exception"
    started = "2026-01-01 10:00:00 INFO training starts\n"
    assert cause(f"{started}{STACK}ValueError: x\nwaiting for other ranks\n") == "python_exception"


def test_an_output_that_closes_with_its_work_done_did_not_end_by_a_line_above() -> None:
    complaint = "du: cannot read directory '/etc/ssl/private': Permission denied\n"
    assert cause(f"{complaint}824 /etc/ssl\ninventory written\n") is None
    assert cause(f"{complaint}824 /etc/ssl\n") == "permission"
    assert cause("java.lang.OutOfMemoryError: Java heap space\nclean-up finished\n") == "memory"
    assert cause(f"{complaint}job ended, exited with status 0\n") is None


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("docker: Cannot connect to the Docker daemon at unix:///var/run/docker.sock.\n", "container"),
        ("psql: Cannot connect to the server\n", "network"),
        ("n1.7hfi_userinit: mmap of rcvhdrq failed: Resource temporarily unavailable\n", "mpi"),
        ("fork: Resource temporarily unavailable\n", "resource_limit"),
        ("n1: nccl: Connection reset by peer\n", "nccl"),
        ("Could not connect to license server 27000@lic: Connection refused\n", "licence"),
        ("munge: Connection refused\n", "node"),
        ("Loss.cu:240: block: [0,0,0], thread: [9,0,0] Assertion `t < n` failed.\n", "cuda_error"),
        ("solve.c:240: main: Assertion `t < n' failed.\n", "abort"),
    ],
)
def test_what_a_line_is_about_decides_where_its_statement_is_unspecific(text: str, kind: str) -> None:
    assert cause(text) == kind


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("make: Nothing to be done for 'all'.\n", None),
        ("make: *** [Makefile:3: all] Error 1\n", "program_error"),
        ("ncclInternalError: Internal check failed. Proxy Call to rank 0 failed (Connect)\n", "nccl"),
        ("12 tests passed, 0 failed\n", None),
        ("SKIPPED [1] test_a.py:4: no GPU found\n", None),
        ("ERROR: ld.so: object 'x.so' from LD_PRELOAD cannot be preloaded (cannot open shared object file): ignored.\n", None),
        ("Unable to find image 'solver:1.2' locally\n1.2: Pulling from library/solver\n", None),
        ("qsub: Job exceeds queue resource limits MSG=cannot satisfy queue max walltime requirement\n", "bad_input"),
        ("Illegal division by zero at depth.pl line 7.\n", "program_error"),
    ],
)  # fmt: skip
def test_a_pattern_means_no_more_than_it_says(text: str, kind: str | None) -> None:
    assert cause(text) == kind


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Error, fewer reads in -1 than in -2\nterminate called after throwing an instance of 'int'\n", "program_error"),
        ("terminate called after throwing an instance of 'int'\nError: the batch system removed 3 files\n", "abort"),
        ("loading mesh\nterminate called after throwing an instance of 'int'\n", "abort"),
        ("The box does not match the cutoff\nsolver: solve.c:4: main: Assertion `a > 0' failed.\n", "program_error"),
    ],
)  # fmt: skip
def test_what_a_program_reports_above_its_abort_is_the_reason(text: str, kind: str) -> None:
    assert cause(text) == kind


def test_a_certain_statement_wins_over_a_weaker_one_on_its_line_unless_something_ran_out() -> None:
    offline = "requests.exceptions.ConnectionError: hub: Max retries exceeded, and we cannot find the file"
    assert cause(offline) == "network"
    assert cause("error while loading shared libraries: libx.so: Cannot allocate memory\n") == "memory"
    assert (
        cause("ERROR on proc 0: Cannot open input script in.x: No such file or directory\n") == "missing_file"
    )


@pytest.mark.parametrize(
    "text",
    ["100% passed, 0 tests failed out of 2\n", "Hosts failed      : 1\n", "task 3 of 9, failed: 1, retries: 2\n"],
)  # fmt: skip
def test_a_count_of_failures_is_no_last_word(text: str) -> None:
    assert cause(text) is None


def test_a_closing_line_does_not_undo_the_exception_above_it() -> None:
    assert (
        cause(f"{STACK}RuntimeError: 6 errors reached\nINFO:launcher:launcher finished\n")
        == "python_exception"
    )


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("zip I/O error: No space left on device\n", "disk"),
        ("I/O error on device sdb\n", "node"),
        ("Message id 7 from task 3 (10.0.0.1) to task 2 (10.0.0.2) timed out.\n", "mpi"),
    ],
)
def test_the_more_specific_of_two_statements_on_a_line_counts(text: str, kind: str) -> None:
    assert cause(text) == kind


@pytest.mark.parametrize(
    "text",
    [
        "cp: cannot stat 'in.dat': No such file or directory\ntiles 3\nmean 0.41\n",
        "Connection refused\nkept 998 of 1000 records\n",
        "read_ahead: Permission denied\n1024   0.61\n2048   1.22\n",
    ],
)
def test_an_output_that_ends_with_a_result_did_not_end_by_a_line_above(text: str) -> None:
    assert cause(text) is None
    assert cause(text + "rc=1\n") is not None


@pytest.mark.parametrize(
    "text",
    [
        'couldn\'t open "x.psf": no such file or directory\nusing the built-in topology\nreading frames\n',
        "no GPU: Torch not compiled with CUDA enabled\ncontinuing on the CPU\nreading frames\n",
    ],
)
def test_a_line_is_no_cause_if_the_next_one_says_that_the_work_goes_on(text: str) -> None:
    assert cause(text) is None
    assert cause(text.replace("using the built-in", "searching the").replace("continuing", "nothing"))


@pytest.mark.parametrize(
    "text",
    [
        "[output]\npermission_denied = skip\non_error = abort\n",
        "+ grep -c 'out of memory' solver.log\n+ sbatch next.sh\n",
        "    except FileNotFoundError: raise SystemExit('error: no input')\n7 a.py\n",
        "Options:\n  --strict            stop if a file is not found\n  --retry N           after connection refused\n",
        "     --connect-timeout <seconds>  Time allowed\n     --fail-early    Fail on first transfer error\n     -x, --connection-refused\n",
        "  -s, --signal=SIG    send this signal instead of the\n                      default, which is SIGKILL\n",
        "Vulnerability Spec rstack overflow: Safe RET, no microcode\nVulnerability Srbds: Not affected\n",
        "SigFpe   : Enabling floating point exception trapping (FOAM_SIGFPE).\nSelecting solidModel\n",
        "Mode: ONLY assembling (without read error correction)\nThreads: 16\n",
    ],
)
def test_settings_scripts_and_help_pages_name_no_cause(text: str) -> None:
    assert cause(text) is None


@pytest.mark.parametrize(
    "verdict",
    [
        "test result: ok. 2 passed; 0 failed; 0 ignored; finished in 0.00s\n",
        "Ran 3 tests in 0.001s\n\nOK\n",
        "==== 3 passed, 1 xfailed in 0.02s ====\n",
        "All tests successful.\nResult: PASS\n",
        "100% tests passed, 0 tests failed out of 3\n\nTotal Test time (real) =   0.02 sec\n",
    ],
)
def test_what_a_test_suite_prints_before_all_its_tests_passed_is_no_cause(verdict: str) -> None:
    text = "ERROR:root:disk quota exceeded\nthread 'main' panicked at src/lib.rs:1:72:\n"
    assert cause(text) == "disk"
    assert cause(text + verdict) is None
    assert cause(text + verdict + "Segmentation fault (core dumped)\n") == "segfault"
    assert cause(text + "2 passed, 10 failed\n") == "disk"


@pytest.mark.parametrize(
    "text",
    [
        "Warning message:\ntar_source(): these files do not exist: R\n",
        "Warning messages:\n1: In f(x) : values dropped\n2: In start(x) :\n  can't open transition history file.\n",
    ],
)
def test_warnings_that_r_lists_are_no_cause_unless_it_reports_an_error(text: str) -> None:
    assert cause(text) is None
    assert cause("Error in start(x) : no such file or directory\n" + text) is not None


@pytest.mark.parametrize(
    "text",
    [
        "Type must be 'ML' when it is continuous. Setting type to 'ML'.\n",
        "epoch 10 loss 0.29 error 0.5390\nepoch 11 loss 0.22 error 0.4693\n",
        "Epoch 5/5\nBest top-1 error: 6.00% at epoch 5\n",
        "cannot connect to n1\nfallback used\nsamples: five\n",
        "caught: cannot connect\nsamples: five\n",
        "DEBUG:app:connection refused, next host\nINFO:app:next host answers\n",
        "FileNotFoundError: [Errno 2] No such file or directory: 'x'\nusing defaults\nrows: twelve\n",
        "And if memory is not enough, you can set `force_col_wise=true`.\n",
        "190123-02:20:16,270 nipype.workflow DEBUG:\n\t Cannot allocate job\n",
        "running 'sh' '-c' 'cmp a b || { echo \"error: result differs\"; exit 1; }'\n",
        "x.rst:9: CRITICAL: InputError: [Errno 2] No such file or directory: 'x'\nbuild succeeded, 4 warnings.\nSee o.\n",
        'Type must be \'ML\'.\n[1] "loci kept"\n[1] "simulated"\n[1] 0.25 0.50\n',
    ],
)
def test_a_line_that_says_what_was_done_or_that_nothing_failed_is_no_cause(text: str) -> None:
    assert cause(text) is None


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("check if file is readable: Permission denied\n", "permission"),
        ("Connection refused by n3, setting its state to down\n", "network"),
    ],
)
def test_a_condition_or_a_change_of_state_does_not_excuse_the_line(text: str, kind: str) -> None:
    assert cause(text) == kind


def test_an_output_that_ends_with_a_count_of_zero_did_not_succeed() -> None:
    failed = "gpg: can't open 'keys/lab.asc': No such file or directory\n"
    assert cause(failed + "gpg: Total number processed: 0\n") == "missing_file"
    assert cause(failed + "gpg: Total number processed: 7\n") is None


def test_the_signal_of_a_rank_comes_before_what_the_launcher_says_of_itself() -> None:
    launcher = "[proxy:0:5@n4] HYDT_dmxu_poll_wait_for_event (tools/demux/demux_poll.c:76): callback returned error status\n"
    assert (
        cause(f"BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\nEXIT CODE: 9\n{launcher}") == "killed"
    )
    assert cause(launcher) == "mpi"


def test_a_rank_that_left_without_finalize_is_not_the_reason_of_its_signal() -> None:
    left = "MPT ERROR: MPI_COMM_WORLD rank 6 has terminated without calling MPI_Finalize()\n"
    assert cause(f"{left}MPT: Received signal 11\n") == "segfault"
    assert cause(left) == "mpi"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("ERROR: You have to specify which program to use\n", "bad_input"),
        ("Kokkos ERROR: SYCL memory space failed to allocate\n", "cuda_memory"),
        ("qsub: PBS: Job rejected by all possible destinations (check syntax,\n", "bad_input"),
        ("Device ID 0 did not correspond to any of the 0 detected device(s)\n", "gpu"),
        ("GurobiError: Overage for too long, 4 active sessions and over the baseline\n", "licence"),
        ("OSError: this file does not appear to be a valid FITS file\n", "bad_input"),
        ('--> Submission error: all jobs must have a queue name specified with "-p"\n', "bad_input"),
        ("cvxpy.error.SolverError: The solver MOSEK is not installed.\n", "missing_package"),
        ("sphinx.errors.ConfigError: config directory doesn't contain a conf.py file (/a)\n", "missing_file"),
        ("LookupError:\n  Resource 'punkt_tab' not found.\n", "missing_file"),
    ],
)
def test_further_statements_are_known(text: str, kind: str) -> None:
    assert cause(text) == kind
