"""Files with names of nodes count like the names, where the submitter's own process can read them."""

import os
import pwd
from pathlib import Path

import pytest

from tests.limits.examples import MACHINE, Known, assess, job
from tocsin.scripts.script import parse

SELF = pwd.getpwuid(os.geteuid()).pw_name


def critical(folder: Path, line: str, user: str = SELF) -> list[str]:
    text = f"#!/bin/sh\n#SBATCH {line}\ntrue\n"
    asked = job(job_id=0, user=user, script="s", work_dir=str(folder), **parse(text).request)
    (parts,) = assess(asked, past=Known(MACHINE, scripts={"s": text}))
    return [finding.kind for finding in parts.findings if finding.level == "critical"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    files = {"hosts": "# of ours\nn1\nn[2-3]\n", "far": "n9\n", "none": "# nobody\n", "odd": "n1\n  n2 x\n"}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("-w ./far", "node_not_in_partition"),
        ("-F far", "node_not_in_partition"),
        ("-x ./far", "unknown_node"),
        ("-x ./hosts -N 2", "too_many_nodes_excluded"),
        ("-w ./hosts -x n3", "node_wanted_and_excluded"),
        ("-w ./hosts -N 2", "more_nodes_listed"),
        ("-w ./none", "empty_node_file"),
        ("-F none", "empty_node_file"),
    ],
)
def test_the_names_in_a_file_are_checked(folder: Path, line: str, kind: str) -> None:
    assert critical(folder, line) == [kind]


@pytest.mark.parametrize("line", ["-w ./hosts", "-x ./hosts", "-F hosts -n 2", "-w ./odd", "-x ./far -x n1"])
def test_a_file_that_fits_or_is_not_plain_is_no_reason(folder: Path, line: str) -> None:
    assert critical(folder, line) == []


def test_files_of_another_user_are_not_read(folder: Path) -> None:
    assert critical(folder, "-w ./far", user="somebody-else") == []
