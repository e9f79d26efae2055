"""Rules about scripts, and advice that edits them."""

import os
import pwd
from dataclasses import replace
from datetime import UTC
from pathlib import Path

import pytest

from tests.limits.examples import GIB, HOUR, MACHINE, Known, assess, job, of_script, past_of, submitted
from tocsin.core.detector import Parts
from tocsin.core.units import parse_duration
from tocsin.core.verdict import Edit, Level
from tocsin.scripts.scheduler import Scheduler
from tocsin.scripts.script import parse


def found(parts: Parts) -> dict[str, str]:
    return {finding.kind: str(finding.level) for finding in parts.findings}


@pytest.mark.parametrize(
    ("lines", "kind", "level"),
    [
        (("--mem=1G", "--mem-per-cpu=500M"), "memory_twice", "critical"),
        (("-N 2", "-n 5", "--ntasks-per-node=2"), "tasks_do_not_fit", "critical"),
        (("-N 1-2", "-n 5", "--ntasks-per-node=2"), "tasks_do_not_fit", "critical"),
        (("-N 3-2",), "nodes_backwards", "critical"),
        (("--time=10", "--time-min=20"), "time_min_above_limit", "critical"),
        (("--begin=now+2hours", "--deadline=now+1hour"), "begin_after_deadline", "critical"),
        (("--begin=2027-02-01", "--deadline=2027-01-31T12:00"), "begin_after_deadline", "critical"),
        (("--nodelist=n[1-2]", "--nodes=1"), "more_nodes_listed", "critical"),
        (("-N 2", "-m plane=4"), "nodes_left_empty", "critical"),
        (("-N 3", "-n 4", "-m plane=2"), "nodes_left_empty", "critical"),
        (("--gpus=1", "--gres=gpu:a100:2"), "types_and_none", "critical"),
        (("--gres=gpu:1,gpu:a100",), "types_and_none", "critical"),
        (("--gpus-per-socket=a100:1", "--gres=gpu:a100:2"), "gpus_of_no_sockets", "critical"),
        (("-N 2", "-n 1"), "more_nodes_than_tasks", "warning"),
        (("--exclusive", "--mem=100M"), "exclusive_with_little_memory", "warning"),
    ],
)
def test_options_that_contradict_each_other(lines: tuple[str, ...], kind: str, level: str) -> None:
    parts = submitted(*lines, machine=None)
    assert found(parts) == {kind: level}
    assert all("line " in line for line in parts.findings[0].evidence)


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("-n 1 --ntasks-per-node=2", "tasks_without_cpus"),
        ("--gpus-per-task=1 --ntasks-per-node=1 -p gpu", "gpus_per_unknown_task"),
        ("-d afterok:12:999999999", "after_impossible_job"),
        ("-p gpu --cpus-per-gpu=1", "amount_per_no_gpu"),
        ("--power=level", "not_in_this_release"),
        ("--exclusive -s", "shared_and_not"),
        ("-p gpu --gres=gpu:1 --gpus-per-node=1", "gpus_twice"),
        ("--deadline=now+10", "deadline_too_soon"),
        ("-d afterany:5_", "not_in_this_release"),
        ("--get-user-env=60L", "not_in_this_release"),
        ("-N 2 -m plane=2 --ntasks-per-node=2", "nodes_left_empty"),
        ("--mem-bind=sort", "not_in_this_release"),
        ("--cpu-freq=low-high", "not_in_this_release"),
        ("--switches=4294967297", "not_in_this_release"),
    ],
)
def test_what_a_newer_slurm_refuses_is_critical_there_alone(line: str, kind: str) -> None:
    assert found(submitted(line, machine=replace(MACHINE, release=(26, 5)))).get(kind) == "critical"
    assert kind not in found(submitted(line, machine=replace(MACHINE, release=(22, 5))))
    assert kind not in found(submitted(line))


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("--power=level", "not_in_this_release"),
        ("--cpu-freq=low-high", "not_in_this_release"),
        ("--switches=4294967297", "not_in_this_release"),
        ("--external", "not_in_this_release"),
        ("--consolidate-segments", "not_in_this_release"),
        ("--deadline=now+4minutes -t 5", "deadline_too_soon"),
        ("-c 2 --tres-per-task=cpu=4", "cpus_twice"),
        ("--exclusive -s", "shared_and_not"),
        ("-N 2 -m plane=2 --ntasks-per-node=2", "nodes_left_empty"),
        ("-d afterok:12:999999999", "after_impossible_job"),
        *((line, "no_nodes") for line in ("-n 4 -N 0", "-w n2 -N 0", "-n 1 -w n[1-2] -N 0", "-N 0-0")),
        ("-p gpu --cpus-per-gpu=1", "amount_per_no_gpu"),
        ("-p gpu --gpus-per-task=1 -N 1-2", "gpus_per_unknown_task"),
        ("-p gpu --gpus-per-task=1 --ntasks-per-node=1", "gpus_per_unknown_task"),
        ("-C ((icelake))", "not_in_this_release"),
        ("-C (icelake|(big))", "not_in_this_release"),
        ("--partition=", "empty_name"),
        ("--partition=,", "empty_name"),
    ],
)
def test_what_24_11_refuses_is_critical_there(line: str, kind: str) -> None:
    """Tried on 24.11.5."""
    assert found(submitted(line, machine=replace(MACHINE, release=(24, 11)))).get(kind) == "critical"


@pytest.mark.parametrize(
    "line",
    [
        *(
            "--container-id=x",
            "--oom-kill-step=1",
            "--segment=2",
            "--stepmgr",
            "--mem-bind=sort",
            "--wckey=*a",
        ),
        *("--get-user-env=10", "--begin=elevenses", "--exclusive=topo", "--tres-per-task=cpu=1"),
        *("-n 1 --ntasks-per-node=2", "-d 12", "-d afterany:5,6", "-N 1,3 -n 4"),
        *("-C (icelake)", "-N 0-2", "-p gpu --gpus-per-task=1 -N 1-1", "-p gpu --gpus-per-task=1 -B 1"),
        *("-p gpu --gpus-per-task=1 --ntasks-per-node=1 -N 1", "-p gpu --gpus-per-task=1 -N 1-2 --gpus=1"),
        *("-p gpu --cpus-per-gpu=1 --gpus=1", "-p gpu --gres=gpu:1 --gpus-per-node=1"),
    ],
)
def test_what_24_11_accepts(line: str) -> None:
    """Tried on 24.11.5."""
    assert "critical" not in found(submitted(line, machine=replace(MACHINE, release=(24, 11)))).values()


@pytest.mark.parametrize(
    ("lines", "kind"),
    [
        (("--gpus-per-task=1 -N 1-2 -p gpu",), "gpus_per_unknown_task"),
        (("--begin=elevenses", "--begin=now"), "not_in_this_release"),
        (("--partition=",), "empty_name"),
        (("--oom-kill-step=1",), "not_in_this_release"),
        (("-n 4 -N 0",), "no_nodes"),
        (("-w n[1-3] -N 1-2",), "more_nodes_listed"),
        (("-w n[1-3] -N 1-2 -n 1",), "more_nodes_listed"),
        (("-C (icelake|(big))",), "not_in_this_release"),
        (("-p gpu --gres=gpu=1",), "not_in_this_release"),
        (("-p gpu --gres=",), "not_in_this_release"),
    ],
)
def test_what_22_05_refuses_is_critical_there(lines: tuple[str, ...], kind: str) -> None:
    assert found(submitted(*lines, machine=replace(MACHINE, release=(22, 5)))).get(kind) == "critical"
    assert kind not in found(submitted(*lines))


def test_only_the_last_number_of_nodes_must_be_one_or_more() -> None:
    """Tried on 22.05 and 26.05; sbatch compares the two ends of every range."""
    for lines in (["-N 0"], ["-N 0-0"], ["-N 4", "-N 0"]):
        assert found(submitted(*lines)) == {"no_nodes": "critical"}
    assert not submitted("-N 0", "-N 2").findings
    assert found(submitted("-N 3-2", "-N 2")) == {"nodes_backwards": "critical"}


def test_only_the_command_line_can_be_both_quiet_and_verbose() -> None:
    """sbatch compares them before it reads the script; tried on 22.05 and 26.05."""
    assert not submitted("-Q -v").findings
    assert found(submitted(command="-Q -v")) == {"quiet_and_verbose": "critical"}


@pytest.mark.parametrize(
    "line", ["-d 12", "-d 12,13", "-d singleton,12", "-d 12_1", "-d afterany:5,6", "-n 4 -N 0"]
)
def test_what_26_05_accepts(line: str) -> None:
    assert "critical" not in found(submitted(line, machine=replace(MACHINE, release=(26, 5)))).values()


def test_cpus_of_a_task_are_given_once() -> None:
    """26.05 refuses two numbers, but a written one overrides that of the environment; 22.05 refuses both."""
    newest = replace(MACHINE, release=(26, 5))
    assert found(submitted("-c 2 --tres-per-task=cpu=4", machine=newest)).get("cpus_twice") == "critical"
    for release, kinds in (((22, 5), {"cpus_twice"}), ((26, 5), set())):
        machine = replace(MACHINE, release=release)
        parts = submitted("-c 2 --gpus=1 -p gpu", machine=machine, command="SBATCH_CPUS_PER_GPU=2")
        assert {kind for kind, level in found(parts).items() if level == "critical"} == kinds


@pytest.mark.parametrize("release", [(22, 5), (26, 5)])
def test_whole_nodes_multiply_memory_per_cpu(release: tuple[int, int]) -> None:
    """Tried on both releases."""
    machine = replace(MACHINE, release=release)
    assert found(submitted("--exclusive --mem-per-cpu=4G", machine=machine)) == {
        "too_few_such_nodes": "critical"
    }
    assert "critical" not in found(submitted("--exclusive --mem-per-cpu=3G", machine=machine)).values()
    assert found(submitted("-C (icelake|(big))", machine=machine)).get("not_in_this_release") == "critical"


@pytest.mark.parametrize(
    "line",
    [
        "--gpus-per-task=1 -N -1 -p gpu",
        "--exclusive --mem-per-cpu=3G",
        "--exclusive=user --mem-per-cpu=4G",
        "--licenses=a|b --licenses=",
        "-C (icelake|big)&icelake",
        "-p gpu --gres=gpu:8,gpu:4",
    ],
)
def test_what_22_05_takes_is_fine(line: str) -> None:
    assert "critical" not in found(submitted(line, machine=replace(MACHINE, release=(22, 5)))).values()


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ('#SBATCH"--partition" nosuch', 'requests partition "nosuch"'),
        ("#SBATCHES -p nosuch", 'line 2: "ES" is not an option'),
        ("#SBATCH=x", 'line 2: "=x" is not an option'),
    ],
)
def test_whatever_follows_the_prefix_is_read(line: str, text: str) -> None:
    texts = [finding.text for finding in of_script(f"#!/bin/sh\n{line}\ntrue\n").findings]
    assert [each for each in texts if each.startswith(text)]


def test_every_number_of_nodes_is_read_by_sbatch() -> None:
    assert found(submitted("-N 2,4", "-N 2"))["several_node_counts"] == "critical"


def test_a_feature_cannot_be_negated() -> None:
    (finding,) = submitted("-C !icelake").findings
    assert finding.text.startswith("requests the node feature !icelake, which no node of this cluster has")


@pytest.mark.parametrize(
    "line",
    [
        "-n 3 --ntasks-per-node=4",
        "--gpus-per-task=1 -N 1 -p gpu",
        "--gpus=1 --gpus-per-task=1 -p gpu",
        "-d afterany:999999999",
        "-d afterok:12345",
    ],
)
def test_what_a_newer_slurm_takes_is_fine(line: str) -> None:
    assert "critical" not in found(submitted(line, machine=replace(MACHINE, release=(26, 5)))).values()


@pytest.mark.parametrize(
    "lines",
    [
        ("--mem=1G",),
        ("-N 2", "-n 4", "--ntasks-per-node=2"),
        ("-N 2-4", "-n 8", "--ntasks-per-node=2"),
        ("-n 5", "--ntasks-per-node=2"),
        ("--time=20", "--time-min=10"),
        ("--begin=now+1hour", "--deadline=now+2hours"),
        ("--begin=16:00", "--deadline=now+2hours"),
        ("--nodelist=n1", "--nodes=2"),
        ("--exclusive", "--mem=0"),
        ("-N 1", "-n 1", "hetjob", "--mem=1G", "--mem-per-cpu=1G"),
    ],
)
def test_options_that_go_together(lines: tuple[str, ...]) -> None:
    assert found(submitted(*lines, machine=None)) == {}


def test_a_line_that_sbatch_ignores_is_reported_with_its_number() -> None:
    text = "#!/bin/bash\n#SBATCH --time=10\nmodule load x\n#SBATCH --mem=4G\n # nothing\n#SBATCH -n 4\n"
    parts = of_script(text, machine=None)
    assert found(parts) == {"directive_ignored": "warning"}
    (finding,) = parts.findings
    assert finding.text.startswith(
        "line 4: #SBATCH is ignored: it comes after the first command (and 1 more)"
    )
    assert len(finding.evidence) == 2


def test_a_script_that_sbatch_refuses_is_critical() -> None:
    assert found(of_script("#SBATCH --time=10\ntrue\n", machine=None)) == {"script_refused": "critical"}
    assert found(of_script("true\n", machine=None)) == {"script_refused": "critical"}
    assert found(of_script("\n", machine=None)) == {"script_refused": "critical"}


@pytest.mark.parametrize(
    "line",
    [
        *("--tiem=10", "--nodelist=n[1-", "--mem=1.5G", "--mem=4X", "--time=abc", "-n zwei", "--ntasks=0"),
        *("--cpus-per-task=0", "--begin=garbage", "--gres=gpu:x:y", "-p", "--nope"),
    ],
)
def test_an_option_that_sbatch_refuses_is_critical(line: str) -> None:
    parts = submitted("--job-name=a", line, machine=None)
    assert found(parts) == {"refused_option": "critical"}
    assert parts.findings[0].text.startswith("line 3: ")


def test_an_accepted_job_has_no_refused_option() -> None:
    text = "#!/bin/bash\n#SBATCH --option-of-a-plugin=1\ntrue\n"
    (parts,) = assess(job(job_id=7, script="d"), past=Known(None, scripts={"d": text}))
    assert found(parts) == {}


def test_a_stray_word_on_the_command_line_is_reported() -> None:
    (parts,) = assess(
        job(job_id=0, script="d", submit_line="--mem=4G foo"), past=Known(None, scripts={"d": "#!/bin/sh\n"})
    )
    assert found(parts) == {"refused_option": "critical"}
    assert "command line" in parts.findings[0].text


def test_the_command_line_wins_over_the_script() -> None:
    lines = ("-N 2", "-n 5", "--ntasks-per-node=2")
    assert found(submitted(*lines, machine=None, command="sbatch --nodes=3 job.sh")) == {}
    assert found(submitted(*lines, machine=None, command="sbatch 'never closed")) == {
        "tasks_do_not_fit": "critical"
    }


def test_advice_edits_the_line_of_the_script() -> None:
    parts = submitted("--job-name=a", "-t 3-0   # long", "--mem=500G")
    assert {advice.change: advice.edit for advice in parts.advice} == {
        "--time=1-00:00:00": Edit(
            line=3, old="#SBATCH -t 3-0   # long", new="#SBATCH -t 1-00:00:00   # long"
        ),
        "--mem=125G": Edit(line=4, old="#SBATCH --mem=500G", new="#SBATCH --mem=125G"),
    }
    assert [advice.edit for advice in submitted("-N9").advice] == [
        Edit(line=2, old="#SBATCH -N9", new="#SBATCH -N3")
    ]


def test_the_edited_script_fits() -> None:
    text = "#!/bin/bash\n#SBATCH --time=3-00:00:00\n#SBATCH --mem=500G\ntrue\n"
    for advice in of_script(text).advice:
        edit = advice.edit
        assert edit is not None
        lines = text.split("\n")
        assert lines[edit.line - 1] == edit.old
        lines[edit.line - 1] = edit.new
        text = "\n".join(lines)
    request = parse(text, zone=UTC).request
    assert (request["time_limit"], request["req_memory"]) == (parse_duration("1-0"), 125 * GIB)
    assert found(of_script(text)) == {}


def test_a_new_line_follows_the_last_directive() -> None:
    text = "#!/bin/bash\n#SBATCH --mem=1G\ntrue\n"
    (parts,) = assess(job(script="d", time_limit=60), past=Known(None, past_of("script", 3), {"d": text}))
    assert parts.advice[0].edit == Edit(line=2, old=None, new="#SBATCH --time=02:24:00")


def test_a_value_of_the_command_line_is_not_edited_in_the_script() -> None:
    parts = submitted("--time=10", command="sbatch --time=3-0 job.sh")
    assert [advice.edit for advice in parts.advice] == [None]
    assert [advice.change for advice in parts.advice] == ["--time=1-00:00:00 on the command line"]
    assert found(parts) == {"time_above_partition": "critical"}


def test_lines_of_another_scheduler_that_sbatch_reads_are_edited() -> None:
    parts = of_script("#!/bin/bash\n#PBS -l walltime=72:00:00\ntrue\n")
    assert [advice.edit for advice in parts.advice] == [
        Edit(line=2, old="#PBS -l walltime=72:00:00", new="#PBS -l walltime=1-00:00:00")
    ]


def test_a_script_of_pbs_alone_is_not_advised_to_drop_its_request() -> None:
    for text, ignore in (("#PBS -N a\n", False), ("#PBS -N a\n#SBATCH -n 1\n", True)):
        parts = of_script(f"#!/bin/bash\n{text}true\n")
        [finding] = [f for f in parts.findings if f.kind == "foreign_directive"]
        assert ("--ignore-pbs" in f"{finding} {parts.advice}") is ignore


def test_advice_passes_the_limits_itself() -> None:
    """64 CPUs of one task: four nodes have 128, but no node has more than 32."""
    parts = submitted("-n 1", "-c 64")
    assert [finding.kind for finding in parts.findings] == ["cpus_above_any_node"]
    assert [advice.change for advice in parts.advice] == ["--cpus-per-task=32"]
    # five tasks of 32 CPUs would still need more than three nodes
    parts = submitted("-n 5", "-c 64")
    assert [finding.kind for finding in parts.findings] == ["cpus_above_any_node"]
    assert not parts.advice
    assert "32;" not in parts.findings[0].text


def test_one_verdict_has_one_number_for_one_line() -> None:
    """Earlier jobs took up to 40 h, the partition allows 24 h, the script asks for 30 h."""
    past = {**past_of("script", 20), "script.elapsed_least": 36 * 3600.0, "script.elapsed_most": 40 * 3600.0}
    (parts,) = assess(job(time_limit=30 * 3600), past=Known(MACHINE, past))
    assert {finding.kind for finding in parts.findings} == {"time_above_partition", "time_below_every_run"}
    assert not parts.advice
    (parts,) = assess(job(time_limit=10 * 3600), past=Known(MACHINE, past))
    assert not parts.advice  # 48 h would be refused


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("--ntasks-per-node=33", "cpus_above_any_node"),
        ("--mincpus=33", "cpus_above_any_node"),
        ("--tmp=2T", "too_few_such_nodes"),
        ("--sockets-per-node=3", "too_few_such_nodes"),
        ("-B 2:17", "too_few_such_nodes"),
        ("-p gpu --gpus-per-node=5", "gpus_above_partition"),
        ("-p gpu -w g1,g2 -c 17", "cpus_above_any_node"),
        ("-p gpu -N 2 --gpus=1", "gpus_disagree"),
        ("-p gpu --gpus-per-task=1", "gpus_per_unknown_task"),
        ("-d nosuch:1", "refused_option"),
        ("-p main,nosuch", "unknown_partition"),
        ("--mem-per-gpu=1G", "amount_per_no_gpu"),
        ("--ntasks-per-gpu=2", "amount_per_no_gpu"),
        ("-p gpu --gpus=1 --cpus-per-gpu=1 -c 1", "cpus_twice"),
        ("-N 1,3", "several_node_counts"),
        ("-m arbitrary", "no_list_of_hosts"),
        ("--uid=0", "only_for_root"),
        ("--gid=0", "only_for_root"),
        ("--deadline=2010-01-20", "deadline_over"),
        ("--deadline=now+10 --time-min=1", "deadline_too_soon"),
        ("--deadline=now+4minutes -t 5", "deadline_too_soon"),
        ("--deadline=now", "deadline_too_soon"),
        ("-p gpu --gpus=3 --gpus-per-node=2", "gpus_disagree"),
        ("-p gpu --gpus=2 --gpus-per-task=2 -n 2", "gpus_disagree"),
        ("-p gpu --gpus-per-socket=1", "gpus_of_no_sockets"),
        ("-p gpu --gpus-per-socket=1 --gpus-per-node=2 --sockets-per-node=1", "gpus_disagree"),
        ("-p gpu --ntasks-per-gpu=2 -n 3", "gpus_disagree"),
        ("-p gpu --ntasks-per-gpu=1 --gpus-per-task=1 -n 1", "tasks_twice"),
        ("-S 1 --thread-spec=1", "cores_twice"),
        ("--batch=icelake", "batch_outside_constraint"),
        ("-C big --batch=icelake", "batch_outside_constraint"),
        ("-B 0", "no_tasks"),
        ("--ntasks-per-core=33", "too_few_such_nodes"),
        ("-x 'n1 n9'", "unknown_node"),
        ("--cpus-per-gpu=1", "too_few_such_nodes"),
        ("-C icelake,big", "too_few_such_nodes"),
    ],
)
def test_what_every_node_must_have(line: str, kind: str) -> None:
    nodes = tuple(replace(n, tmp_disk=2**40, sockets=2, cores_per_socket=16) for n in MACHINE.nodes)
    parts = submitted(line, machine=replace(MACHINE, nodes=nodes))
    assert kind in [finding.kind for finding in parts.findings if finding.level is Level.CRITICAL]


@pytest.mark.parametrize(
    "line",
    [
        *(
            "--mem-per-gpu=0",
            "-p gpu -n 2 --ntasks-per-gpu=1",
            "-p gpu --gpus=2 --mem-per-gpu=1G",
        ),
        *("-m arbitrary -w n1", "--deadline=2099-01-20", "--deadline=now+1hour", "-B 0 -w n[1-2]"),
        *(
            "-p gpu --ntasks-per-gpu=2",
            "--gpus-per-task=a100 -c 2",
            "-w n? -w n[1-2]",
            "-p gpu --gres=gpu:+1",
            "--tmp=4294967296",
            "--deadline=now+5minutes -t 5",
        ),
        *("-p gpu --gpus=2 --cpus-per-gpu=1", "-p gpu --gpus-per-task=0", "-N 1-0", "-N 9 -n 2"),
    ],
)
def test_what_looks_alike_and_is_taken_is_not_critical(line: str) -> None:
    staff = submitted("-A staff --qos=high -N 2", line, machine=replace(MACHINE, release=(26, 5)))
    assert not [f for f in staff.findings if f.level is Level.CRITICAL]


def test_a_list_of_node_counts_is_taken_from_23_11_on() -> None:
    assert not submitted("-N 1,3", machine=replace(MACHINE, release=(23, 11))).findings


@pytest.mark.parametrize(
    "line", ["--tres-per-task=cpu=1", "--exclusive=topo", "--begin=elevenses", "--gres=gres/gpu:1 -p gpu"]
)
def test_what_an_older_slurm_refuses_is_critical_there_alone(line: str) -> None:
    kind = "not_in_this_release"
    assert found(submitted(line, machine=replace(MACHINE, release=(22, 5)))).get(kind) == "critical"
    assert kind not in found(submitted(line, machine=replace(MACHINE, release=(26, 5))))
    assert kind not in found(submitted(line))


@pytest.mark.parametrize("line", ["--reboot", "--nice=-5"])
def test_what_only_operators_may_is_critical_for_others(line: str) -> None:
    kinds = [
        found(submitted(line, machine=replace(MACHINE, operator=is_one))) for is_one in (False, True, None)
    ]
    assert kinds == [{"only_for_operators": "critical"}, {}, {}]


def test_settings_of_the_cluster_limit_sampling_and_governors() -> None:
    machine = replace(MACHINE, sampling=30, cpu_governors=("OnDemand", "Performance"))
    for line in ("--acctg-freq=60", "--acctg-freq=task=0", "--acctg-freq=energy=5,task=31"):
        assert found(submitted(line, machine=machine)) == {"sampling_too_rare": "critical"}
    assert found(submitted("--cpu-freq=PowerSave", machine=machine)) == {"governor_not_allowed": "critical"}
    for line in ("--acctg-freq=30", "--acctg-freq=energy=90", "--acctg-freq=60 --mem=0", "--cpu-freq=perf"):
        assert not submitted(line, machine=machine).findings


def test_numbers_of_which_slurm_keeps_16_bits_are_not_compared_as_given() -> None:
    nodes = tuple(replace(n, sockets=2, cores_per_socket=16, threads_per_core=1) for n in MACHINE.nodes)
    for line in (
        *("--ntasks-per-socket=65536", "--cores-per-socket=65534", "--mincpus=65537"),
        *("--ntasks-per-node=4294967294", "-p gpu --ntasks-per-gpu=2147483648", "--mincpus=4294967295"),
        *("-p gpu --gpus-per-task=1 -B 1", "-p gpu '--cpus-per-gpu= 2' --gpus=1"),
    ):
        assert not submitted(line, machine=replace(MACHINE, nodes=nodes)).findings
    assert "too_few_such_nodes" in found(
        submitted("--sockets-per-node=65535", machine=replace(MACHINE, nodes=nodes))
    )


def test_nodes_beyond_the_number_of_tasks_are_left_out() -> None:
    assert "node_not_in_partition" in found(submitted("-w n[2-9] -n 5"))
    assert "node_not_in_partition" not in found(submitted("-w n[2-9] -n 2"))


def test_the_minimum_time_is_compared_with_the_default_of_the_partition() -> None:
    main, *others = MACHINE.partitions
    machine = replace(MACHINE, partitions=(replace(main, default_time=600), *others))
    assert found(submitted("--time-min=20", machine=machine)) == {"time_min_above_default": "critical"}
    assert not submitted("--time-min=20 -t 30", machine=machine).findings
    assert not submitted("--time-min=20").findings


def test_a_missing_file_is_critical_to_the_submitter(tmp_path: Path) -> None:
    """Only a process of the submitter sees what sbatch will see."""
    me = pwd.getpwuid(os.geteuid()).pw_name
    assert found(submitted(f"-D {tmp_path}", "--nodefile=nosuch", user=me)) == {"no_such_file": "critical"}


def test_a_file_that_sbatch_reads_and_that_is_missing_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text("n1\n")
    for option in ("--nodefile", "--export-file", "--bbf", "--nodelist", "--exclude"):
        found = submitted(f"-D {tmp_path}", f"{option}=./nosuch").findings
        assert ("no_such_file", Level.WARNING) in [(f.kind, f.level) for f in found]
        there = submitted(f"-D {tmp_path}", f"{option}=./hosts").findings
        assert "no_such_file" not in [finding.kind for finding in there]


def test_every_component_of_a_heterogeneous_job_is_checked() -> None:
    fine = ("-n 1 --mem=1G", "hetjob", "-n 2 -p big")
    assert not submitted(*fine).findings
    for broken, kind in (
        (("-n 1", "hetjob", "-c 64"), "cpus_above_any_node"),
        (("-N 4 -n 4", "hetjob", "-n 1"), "nodes_above_partition"),
        (("-n 1", "hetjob", "-p nosuch"), "unknown_partition"),
        (("-n 1", "hetjob", "-N 3-2"), "nodes_backwards"),
        (("-n 1 -a 1-3", "hetjob", "-n 1"), "array_of_components"),
    ):
        assert kind in found(submitted(*broken))


def test_components_have_different_nodes() -> None:
    """As Slurm 22.05 and 26.05 answered."""
    for lines in (("-w n1", "hetjob", "-w n[1-2]"), ("-x n1", "hetjob", "-w n1")):
        assert found(submitted(*lines)) == {"node_of_two_components": "critical"}
    assert not submitted("-w n1 -x n2", "hetjob", "-w n3 -x n2").findings


def test_options_of_one_component_do_not_count_for_another() -> None:
    assert not submitted("-n 4", "hetjob", "-p gpu --gpus-per-node=4").findings


def test_empty_names_of_partitions_are_left_out() -> None:
    assert not submitted("-p main,").findings
    assert found(submitted("-p ,nosuch")) == {"unknown_partition": "critical"}


def test_tasks_of_a_core_may_share_cpus() -> None:
    assert not submitted("-O --ntasks-per-core=33").findings


def test_a_component_has_no_defaults_of_the_first() -> None:
    text = "#!/bin/bash\n#SBATCH -p big\n#SBATCH hetjob\n#SBATCH -n 1\ntrue\n"
    script = parse(text, scheduler=Scheduler.SLURM)
    wanted = job(job_id=0, script="x", time_limit=72 * HOUR, **script.request)  # the limit of partition big
    assert not assess(wanted, past=Known(MACHINE, scripts={"x": text}))[0].findings


def test_folders_that_are_not_there_are_a_warning(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    here = f"-D {tmp_path}"
    assert not submitted(here, "-o logs/%j.txt", "-e err.txt").findings
    assert not submitted(here, "-o %x/out.txt").findings  # only known when the job runs
    assert found(submitted(here, "-o nosuch/out.txt")) == {"no_output_folder": "warning"}
    assert found(submitted(here, "-e $HOME/err.txt")) == {
        "no_output_folder": "warning"
    }  # sbatch expands no variables
    assert found(submitted(f"-D {tmp_path}/nosuch")) == {"no_work_folder": "warning"}


def test_an_abbreviation_that_may_be_several_options_is_ambiguous() -> None:
    (finding,) = submitted("--mem-per=1G").findings
    assert finding.text.startswith('line 2: "--mem-per" is ambiguous; write --mem-per-cpu or --mem-per-gpu; ')
    assert submitted("--mem-per-c=200G").findings[0].kind == "memory_above_any_node"


@pytest.mark.parametrize(
    "line", ["-w n[2-3] -N 1-2", "-w n[2-3],n2 -N 1-2", "-w n[2-3],n2 -N 2", "-w n[1-3] -N 2-3"]
)
def test_as_many_different_nodes_as_allowed_may_be_listed(line: str) -> None:
    """Tried on 22.05."""
    assert "more_nodes_listed" not in found(submitted(line, machine=replace(MACHINE, release=(22, 5))))


@pytest.mark.parametrize(
    ("line", "ends"),
    [
        ("-p gpu --deadline=now+59minutes", True),
        ("-p gpu --deadline=now+61minutes", False),
        ("-p gpu --deadline=now+30minutes --time-min=5", False),
        ("-p gpu --deadline=now+30minutes -t 20", False),
        ("-p main,gpu --deadline=now+30minutes", False),
    ],
)
def test_slurm_22_05_ends_a_job_whose_deadline_is_before_the_default_time(line: str, ends: bool) -> None:
    partitions = (replace(p, default_time=HOUR if p.name == "gpu" else None) for p in MACHINE.partitions)
    machine = replace(MACHINE, release=(22, 5), partitions=tuple(partitions))
    assert ("deadline_too_soon" in found(submitted(line, machine=machine))) == ends
    assert "deadline_too_soon" not in found(submitted(line, machine=replace(machine, release=(24, 11))))
