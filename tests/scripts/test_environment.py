"""What sbatch reads from the environment of the submitter."""

from typing import Any

import pytest

from tests.limits.examples import MACHINE, of_script
from tocsin.scripts.environment import assignments
from tocsin.scripts.script import parse

SCRIPT = "#!/bin/sh\n#SBATCH --partition=main --mem-per-cpu=1G\ntrue\n"


def request(*words: str, script: str = SCRIPT) -> dict[str, Any]:
    return parse(script).with_options(words, only_options=True).request


def test_only_variables_of_sbatch_are_read() -> None:
    environment = {"SBATCH_QOS": "high", "SBATCH_NODES": "9", "SLURM_NTASKS": "9", "PATH": "/bin"}
    assert assignments(environment) == ("SBATCH_QOS=high",)


@pytest.mark.parametrize(
    ("words", "partition"),
    [
        ((), "main"),
        (("SBATCH_PARTITION=gpu",), "gpu"),
        (("SBATCH_PARTITION=gpu", "-p", "big"), "big"),
    ],
)
def test_the_environment_is_between_the_script_and_the_command_line(
    words: tuple[str, ...], partition: str
) -> None:
    assert request(*words)["partition"] == partition


@pytest.mark.parametrize(
    ("words", "memory"),
    [
        (("SBATCH_MEM_PER_NODE=8G",), 2**30),
        (("SBATCH_MEM_PER_CPU=2G",), 2 * 2**30),
        (("SBATCH_MEM_PER_CPU=2G", "--mem-per-cpu=3G"), 3 * 2**30),
    ],
)
def test_memory_in_the_environment_counts_in_the_form_of_the_script(
    words: tuple[str, ...], memory: int
) -> None:
    assert request(*words)["req_memory"] == memory


@pytest.mark.parametrize(
    ("value", "requeued"),
    [("", True), ("yes", True), ("1", True), ("no", None), ("0", None), ("2x", None)],
)
def test_a_variable_sets_a_flag_unless_it_says_no(value: str, requeued: bool | None) -> None:
    assert request(f"SBATCH_REQUEUE={value}").get("requeue") is requeued


def test_the_environment_is_read_for_every_component() -> None:
    script = "#!/bin/sh\n#SBATCH -n1\n#SBATCH hetjob\n#SBATCH -n2\ntrue\n"
    read = parse(script).with_options(
        ["SBATCH_PARTITION=gpu", "-t", "5", ":", "-p", "main"], only_options=True
    )
    assert [part.get("partition") for part in read.components] == ["gpu", "main"]
    assert [part.get("time_limit") for part in read.components] == [300, None]


def critical(command: str, script: str = SCRIPT) -> list[str]:
    parts = of_script(script, machine=MACHINE, command=command)
    return [finding.text for finding in parts.findings if finding.level == "critical"]


def test_a_refusal_names_the_variable() -> None:
    (text,) = critical("SBATCH_TIMELIMIT=soon")
    assert text.startswith("SBATCH_TIMELIMIT: --time:")
    (text,) = critical("SBATCH_PARTITION=nosuch")
    assert text.startswith('requests partition "nosuch"')
    assert text.endswith("(in the environment: SBATCH_PARTITION=nosuch)")


def test_a_variable_that_is_overridden_is_not_named() -> None:
    (text,) = critical("SBATCH_PARTITION=gpu -p nosuch")
    assert "environment" not in text


def test_a_variable_is_not_named_where_it_changes_nothing() -> None:
    (text,) = critical("SBATCH_QOS=normal -p nosuch")
    assert "environment" not in text


def test_a_variable_takes_the_place_of_a_directive_that_another_one_excludes() -> None:
    """As sbatch 22.05 read them."""
    script = "#!/bin/sh\n#SBATCH --mem=2G --mem-per-cpu=1G\ntrue\n"
    assert critical("", script)
    assert critical("SBATCH_MEM_PER_CPU=1G", script) == []
    assert critical("SBATCH_MEM_PER_CPU=1G --mem-per-cpu=1G", script)


def test_a_value_that_is_overridden_is_no_reason_to_refuse() -> None:
    """slurmctld sees only the last dependency."""
    assert critical("", "#!/bin/sh\n#SBATCH -d nosuch:1\ntrue\n")
    assert critical("-d afterok:1", "#!/bin/sh\n#SBATCH -d nosuch:1\ntrue\n") == []


def test_an_empty_first_component_is_read() -> None:
    (text,) = critical(": -p nosuch")
    assert text.startswith("component 1: ")
