"""An output file is read as its owner may, and never otherwise; the record speaks where it says nothing."""

import os
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.kits.ended_jobs import row
from tocsin.causes.catalogue import load_catalogue
from tocsin.causes.job_cause import cause_of_job
from tocsin.causes.reading import HEAD, TAIL, read_excerpt, within
from tocsin.sources.permitted import Refused, Submitter

CATALOGUE = load_catalogue()
NOBODY = 65534
OWNER = NOBODY if os.geteuid() == 0 else os.geteuid()
WHO = Submitter(OWNER, frozenset({os.getegid()}))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder that everybody may enter, up to the root."""
    home = tmp_path / "run"
    home.mkdir()
    for part in (home, *home.parents):
        if part.stat().st_uid == os.geteuid() and part != Path("/"):
            part.chmod(part.stat().st_mode | 0o755)
    return home


def written(path: Path, text: str, mode: int = 0o644) -> Path:
    path.write_text(text)
    if os.geteuid() == 0:
        os.chown(path, OWNER, OWNER)
    path.chmod(mode)
    return path


def job(folder: Path, **fields: Any) -> dict[str, Any]:
    return row(17, **{"work_dir": str(folder), "uid": OWNER, "outcome": "failed", **fields})


def test_the_line_of_the_output_is_the_evidence(folder: Path) -> None:
    path = written(folder / "slurm-17.out", "start\n\nModuleNotFoundError: No module named 'x\x07'\n")
    cause = cause_of_job(job(folder), None, CATALOGUE).cause
    assert cause is not None
    assert (cause.kind, cause.file, cause.line) == ("missing_package", str(path), 3)
    assert cause.text == r"ModuleNotFoundError: No module named 'x\x07'"
    assert "Install" in cause.advice


def test_of_two_files_the_closer_to_the_root_counts(folder: Path) -> None:
    written(folder / "o", "Killed\n")
    written(folder / "e", "OSError: [Errno 28] No space left on device\n")
    script = "#!/bin/bash\n#SBATCH -o o\n#SBATCH -e e\n"
    cause = cause_of_job(job(folder), script, CATALOGUE).cause
    assert cause is not None
    assert cause.kind == "disk"


def test_a_job_that_completed_or_was_cancelled_has_no_cause(folder: Path) -> None:
    written(folder / "slurm-17.out", "MemoryError\n")
    for outcome in ("completed", "cancelled", None):
        found = cause_of_job(job(folder, outcome=outcome), None, CATALOGUE)
        assert (found.cause, found.missing, found.read) == (None, None, ())


def test_an_output_that_names_nothing_is_unknown(folder: Path) -> None:
    written(folder / "slurm-17.out", "step 1\nstep 2\n")
    cause = cause_of_job(job(folder), None, CATALOGUE).cause
    assert cause is not None
    assert (cause.kind, cause.text) == ("unknown", "")


@pytest.mark.parametrize(
    ("fields", "kind", "text"),
    [
        ({"outcome": "out_of_memory", "state": "OUT_OF_MEMORY"}, "memory", "state OUT_OF_MEMORY"),
        ({"outcome": "timeout"}, "walltime", "state timeout"),
        ({"outcome": "node_fail"}, "node", "state node_fail"),
        ({"exit_signal": 11}, "segfault", "ended by signal 11"),
        ({"exit_code": 132}, "illegal_instruction", "ended by signal 4"),
        ({"exit_signal": 9}, "killed", "ended by signal 9"),
        ({"exit_code": 143}, "killed", "ended by signal 15"),
    ],
)
def test_the_record_names_the_cause_where_the_output_does_not(
    folder: Path, fields: dict[str, Any], kind: str, text: str
) -> None:
    written(
        folder / "slurm-17.out",
        "cat: notes.txt: No such file or directory\n" if "outcome" in fields else "ok\n",
    )
    cause = cause_of_job(job(folder, **fields), None, CATALOGUE).cause
    assert cause is not None
    assert (cause.kind, cause.text, cause.file) == (kind, text, None)


def test_a_certain_line_says_more_than_the_time_limit_but_not_more_than_a_dead_node(folder: Path) -> None:
    written(folder / "slurm-17.out", "torch.cuda.OutOfMemoryError: CUDA out of memory.\n")
    timeout = cause_of_job(job(folder, outcome="timeout"), None, CATALOGUE).cause
    dead = cause_of_job(job(folder, outcome="node_fail"), None, CATALOGUE).cause
    assert timeout is not None
    assert timeout.kind == "cuda_memory"
    assert dead is not None
    assert dead.kind == "node"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a file of somebody else")
def test_a_file_that_the_owner_may_not_read_is_not_read(folder: Path) -> None:
    path = written(folder / "slurm-17.out", "MemoryError\n")
    os.chown(path, 0, 0)
    path.chmod(0o600)
    found = cause_of_job(job(folder), None, CATALOGUE)
    assert found.cause is None
    assert "may not read" in (found.missing or "")


def test_files_of_roots_jobs_are_not_read(folder: Path) -> None:
    path = written(folder / "slurm-17.out", "MemoryError\n")
    with pytest.raises(Refused, match="root"):
        read_excerpt(Submitter(0, frozenset({0})), str(path))


def test_pipes_and_devices_are_refused_at_once(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    (folder / "null").symlink_to("/dev/null")
    for name in ("pipe", "null"):
        with pytest.raises(Refused):
            read_excerpt(WHO, str(folder / name))


def test_a_file_that_is_not_there_and_an_unknown_place_say_so(folder: Path) -> None:
    assert "slurm-17.out" in (cause_of_job(job(folder), None, CATALOGUE).missing or "")
    assert "not known" in (cause_of_job(job(folder, work_dir=None), None, CATALOGUE).missing or "")
    unknown = cause_of_job(job(folder, uid=None, user="no such user"), None, CATALOGUE)
    assert "no such user" in (unknown.missing or "")


def test_of_a_long_file_both_ends_are_read_with_true_line_numbers(folder: Path) -> None:
    lines = [f"line {i}" for i in range((HEAD + TAIL) // 6)] + ["Segmentation fault (core dumped)"]
    path = written(folder / "slurm-17.out", "\n".join(lines) + "\n")
    excerpt = read_excerpt(WHO, str(path))
    assert len(excerpt.head) == HEAD
    assert len(excerpt.tail) <= TAIL
    assert excerpt.tail_line is not None
    assert lines[excerpt.tail_line - 1] == excerpt.tail.split("\n", 1)[0]
    cause = cause_of_job(job(folder), None, CATALOGUE).cause
    assert cause is not None
    assert (cause.kind, cause.line) == ("segfault", len(lines))


def test_a_file_system_that_hangs_does_not_hold_up_the_caller() -> None:
    hang = threading.Event()
    with pytest.raises(TimeoutError):
        within(0.01, lambda: hang.wait(60))
    hang.set()
    assert within(5, lambda: 3) == 3
