"""Rules about names in a request: features of nodes, and nodes to use or to exclude."""

import re
from collections.abc import Iterator, Sequence

from tocsin.core.errors import NodeListError
from tocsin.core.nodelist import expand_nodes
from tocsin.limits.breach import Breach, plural
from tocsin.limits.capacity import Capacity
from tocsin.limits.demand import Demand
from tocsin.scripts.submission import Submission

__all__ = ["feature_breaches", "list_problem", "node_list_breaches", "preference_breaches"]

_TAKES_SOME_LISTED = (22, 6)
_FEATURE = r"[\w!][^&|\[\]()*,\s]*"
"""Slurm has no negation: `!avx` is the name of a feature."""


def feature_breaches(demand: Sequence[Demand], capacity: Capacity) -> Iterator[Breach]:
    """Slurm refuses a feature that no node of the cluster has, wherever it is in the constraint."""
    if capacity.features is None:
        return
    unknown: dict[int, Breach | None] = {}  # the same in each partition of a job
    for row in demand:
        if row["constraints"] is None:
            continue
        constraint = row["constraints"][:10_000]
        evidence = (f"--constraint={constraint[:200]}",)
        if row["row"] not in unknown:
            unknown[row["row"]] = _unknown(row["row"], "--constraint", constraint, capacity)
        if (
            not unknown[row["row"]]
            and not set("|([") & set(constraint)
            and (nodes := capacity.nodes[row["partition"]])
        ):
            for name, number in re.findall(rf"({_FEATURE})\*(\d{{1,9}})", constraint, re.ASCII):
                there = sum(name in node.features for node in nodes)
                if there < int(number):
                    asked = plural(int(number), "node")
                    text = f"requests {asked} with the feature {name}, but partition {row['partition']} has {there}"
                    yield Breach.here(
                        row, "too_few_such_nodes", text, f"request at most {there}", evidence=evidence
                    )
    yield from filter(None, unknown.values())


def preference_breaches(submissions: Sequence[Submission | None], capacity: Capacity) -> Iterator[Breach]:
    """Slurm refuses unknown features even if they are only preferred."""
    if capacity.features is None:
        return
    for row, submission in enumerate(submissions):
        preferred = submission.value("--prefer")[:10_000] if submission else ""
        if preferred and (unknown := _unknown(row, "--prefer", preferred, capacity)):
            yield unknown


def _unknown(row: int, option: str, given: str, capacity: Capacity) -> Breach | None:
    features = capacity.features or frozenset()
    unknown = [name for name in re.findall(rf"(?<![\w*!]){_FEATURE}", given) if name not in features]
    if not unknown:
        return None
    return Breach(
        row=row,
        kind="unknown_feature",
        text=f"requests the node feature {unknown[0]}, which no node of this cluster has",
        remedy=f"change {option} (available: {', '.join(sorted(features)[:20]) or 'none'})",
        evidence=(f"{option}={given[:200]}",),
    )


def node_list_breaches(demand: Sequence[Demand], capacity: Capacity) -> Iterator[Breach]:
    """Nodes requested or excluded by name, compared with the nodes of the partition."""
    for row in demand:
        if row["req_node_list"] is None and row["exclude_nodes"] is None:
            continue
        try:
            wanted = set(expand_nodes(row["req_node_list"] or ""))
            excluded = set(expand_nodes(row["exclude_nodes"] or ""))
        except NodeListError:
            continue  # sbatch refuses the list itself
        if capacity.names[row["partition"]] and (found := list_problem(row, wanted, excluded, capacity)):
            given = {"--nodelist": row["req_node_list"], "--exclude": row["exclude_nodes"]}
            evidence = tuple(f"{option}={value[:200]}" for option, value in given.items() if value)
            yield Breach.here(row, *found, evidence=evidence)


def list_problem(
    row: Demand, wanted: set[str], excluded: set[str], capacity: Capacity
) -> tuple[str, str, str] | None:
    """Kind, text and remedy."""
    partition, nodes = row["partition"], int(row["nodes"])
    there = capacity.names[partition]
    foreign, both = sorted(wanted - there), sorted(wanted & excluded)
    release = capacity.machine.release
    if (release is None or release >= _TAKES_SOME_LISTED) and nodes <= len((wanted & there) - excluded):
        # Of more nodes than the job needs, it gets some; the others need only exist.
        exist = {node.name for node in capacity.machine.nodes}.issuperset(foreign)
        foreign, both = [] if exist or release is None else foreign, []
    if foreign:
        return (
            "node_not_in_partition",
            f"requests node {foreign[0]}, which is not in partition {partition}",
            "change --nodelist or the partition",
        )
    if (elsewhere := excluded - there) and not row["job_id"]:  # nodes may be removed after Slurm took it
        known = {node.name for node in capacity.machine.nodes}
        if known and not elsewhere <= known:
            text = f"excludes node {min(elsewhere - known)}, which this cluster does not have"
            return "unknown_node", text, "change --exclude"
    if both:
        return (
            "node_wanted_and_excluded",
            f"requests node {both[0]} and excludes it",
            "remove it from --nodelist or from --exclude",
        )
    left = len(there - excluded)
    if left < nodes <= len(there):
        return (
            "too_many_nodes_excluded",
            f"needs {plural(nodes, 'node')}, but excludes all but {left} of partition {partition}",
            "exclude fewer",
        )
    return None
