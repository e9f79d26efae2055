"""What a user may request: accounts, QOS, licences, reservations, generic resources."""

from dataclasses import replace

import pytest

from tests.limits.examples import GIB, HOUR, MACHINE, Known, assess, job, submitted
from tocsin.core.machine import Association, JobLimits, Reservation
from tocsin.core.verdict import Level

CLUSTER = replace(
    MACHINE,
    gres_types=("gpu",),
    licenses={"solver": 2},
    reservations=(
        Reservation(name="ours", users=("eve",), node_list="n[1-2]"),
        Reservation(name="theirs", users=("bob",), accounts=("others",)),
        Reservation(name="most", users=("-bob",)),
    ),
    associations=(
        Association(account="physics", qos=("normal", "short")),
        Association(account="tiny", qos=("normal",), limits=JobLimits(max_time=300, max_tres={"cpu": 1})),
        Association(account="gpu", partition="gpu", qos=("normal",)),
    ),
    qos={
        "normal": JobLimits(),
        "short": JobLimits(max_time=600, max_tres={"node": 1, "mem": GIB}),
        "other": JobLimits(),
    },
)


def critical(*lines: str) -> list[str]:
    found = submitted(*lines, machine=CLUSTER).findings
    return [finding.kind for finding in found if finding.level is Level.CRITICAL]


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("-A nosuch", "account_not_associated"),
        ("-A gpu", "account_not_associated"),
        ("-A physics --qos=nosuch", "qos_not_associated"),
        ("-A physics --qos=other", "qos_not_associated"),
        ("-A physics --qos=short -t 11", "time_above_account"),
        ("-A physics --qos=short -t 5 -N 2", "resources_above_account"),
        ("-A physics --qos=short -t 5 -N 1 --mem=2G", "resources_above_account"),
        ("-A tiny -t 6", "time_above_account"),
        ("-A tiny -t 5 -n 2", "resources_above_account"),
        ("-A physics -L solver:3", "licenses_above_total"),
        ("-A physics -L nosuch", "unknown_license"),
        ("-A physics --reservation=nosuch", "unknown_reservation"),
        ("-A physics --reservation=theirs", "reservation_not_allowed"),
        ("-A physics --reservation=ours,theirs", "reservation_not_allowed"),
        ("-A physics --reservation=ours -N 3", "too_few_such_nodes"),
        ("-A physics --gres=fpga:1", "unknown_gres"),
        ("-A physics --gres=gpu:1,none -p gpu", "unknown_gres"),
        ("-A physics -L solver:2;solver", "licenses_above_total"),
        ("-A physics --qos=normal,short", "qos_not_associated"),
        ("-A physics --qos=", "empty_name"),
    ],
)
def test_a_request_beyond_what_the_user_may_is_critical(line: str, kind: str) -> None:
    assert critical(line) == [kind]


@pytest.mark.parametrize(
    "line",
    [
        "-A physics",
        "-A gpu -p gpu",
        "-A PHYSICS --qos=short -t 10 -N 1 --mem=1G",
        "-A tiny -t 5 -n 1",
        "-A physics -L solver:2",
        "-A physics -L solver:3|mesh:1",
        "-A physics --reservation=ours -N 2",
        "-A physics --reservation=most",
        "-p gpu -A gpu --gres=gpu:a100:1",
    ],
)
def test_a_request_within_it_is_not(line: str) -> None:
    assert critical(line) == []


def test_a_qos_of_no_account_is_refused_whatever_the_account() -> None:
    (finding,) = submitted("--qos=other", machine=CLUSTER).findings
    assert (finding.level, finding.kind) == ("critical", "qos_not_associated")
    assert finding.text.startswith("uses QOS other, which no account of this user may use")
    assert not submitted("--qos=normal", machine=CLUSTER).findings


def test_a_newer_release_takes_a_list_of_qos() -> None:
    machine = replace(CLUSTER, release=(26, 5))
    assert not submitted("-A physics --qos=normal,short", machine=machine).findings
    assert "qos_not_associated" in [
        finding.kind for finding in submitted("-A physics --qos=normal,other", machine=machine).findings
    ]


def test_the_longest_time_of_a_partition_is_no_request() -> None:
    """`check` fills it in; Slurm gives such a job what its account allows."""
    wanted = job(job_id=0, script="x", account="tiny", partition="main", time_limit=24 * HOUR)
    assert not assess(wanted, past=Known(CLUSTER, scripts={"x": "#!/bin/bash\ntrue\n"}))[0].findings


def test_the_least_cpus_of_a_node_count_for_a_limit() -> None:
    assert critical("-A tiny -t 5 --mincpus=2") == ["resources_above_account"]


def test_only_usable_reservations_are_advised() -> None:
    (finding,) = submitted("--reservation=nosuch", machine=CLUSTER).findings
    assert finding.text == "uses reservation nosuch, which does not exist; use one of ours, most"
