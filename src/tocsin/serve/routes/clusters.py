"""Clusters, their nodes, and how their jobs ended."""

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response

from tocsin.app.service import ClusterState
from tocsin.app.statistics import statistics, stored_clusters
from tocsin.core.errors import InputError, NotFound
from tocsin.core.units import format_instant
from tocsin.serve.dependencies import Asker, Cluster, TheService
from tocsin.serve.documents import reply
from tocsin.serve.replies import json_reply

__all__ = ["router"]

router = APIRouter(tags=["clusters"])

_NODE = {"name": "n1", "cpus": 64, "memory": 274877906944, "state": "IDLE", "reason": None}


@router.get(
    "/clusters", responses=reply({"clusters": [{"cluster": "lab", "followed": True, "problem": None}]})
)
def clusters(request: Request, service: TheService, asker: Asker) -> Response:
    """The clusters that are followed, and those with jobs in the store."""
    del asker
    found = {state.name: _state(state) for state in service.states if state.name}
    for name in stored_clusters(service.app):
        found.setdefault(
            name, {"cluster": name, "followed": False, "problem": None, "last": None, "queued": None}
        )
    return json_reply(request, {"clusters": [found[name] for name in sorted(found)]})


@router.get("/nodes", responses=reply({"cluster": "lab", "nodes": [_NODE], "partitions": []}))
def nodes(request: Request, service: TheService, asker: Asker, cluster: Cluster = None) -> Response:
    """Nodes and partitions, as the watch last read them."""
    del asker
    machine = service.machine_of(cluster)
    return json_reply(
        request,
        {
            "cluster": machine.cluster,
            "nodes": [asdict(node) for node in machine.nodes],
            "partitions": [asdict(partition) for partition in machine.partitions],
        },
    )


@router.get("/nodes/{node}", responses=reply(_NODE))
def one_node(
    request: Request,
    service: TheService,
    asker: Asker,
    node: Annotated[str, Path(max_length=200)],
    cluster: Cluster = None,
) -> Response:
    """One node."""
    del asker
    machine = service.machine_of(cluster)
    found = next((each for each in machine.nodes if each.name == node), None)
    if found is None:
        raise NotFound(f'no node "{node}" in cluster "{machine.cluster}"; /api/v1/nodes lists them')
    return json_reply(request, asdict(found))


@router.get(
    "/statistics",
    responses=reply(
        {"cluster": "lab", "jobs": 812, "ended": 790, "outcomes": {"completed": 700}, "users": []}
    ),
)
def cluster_statistics(
    request: Request,
    service: TheService,
    asker: Asker,
    cluster: Cluster = None,
    days: Annotated[
        int, Query(ge=1, le=3650, description="Only jobs that were alive in the last N days.")
    ] = 30,
) -> Response:
    """How jobs ended, what failures cost and who has most of them; users see no names of others."""
    names = [cluster] if cluster else stored_clusters(service.app)
    if len(names) != 1:
        raise InputError(f"there are {len(names)} clusters with jobs: {', '.join(names) or 'none'}; name one")
    state = service.state_of(names[0])
    now = state.followed.now() if state and state.followed else None
    found = statistics(service.app, names[0], days=days, now=now)
    found["users"] = [row for row in found["users"] if asker.may_see(row["user"])]
    return json_reply(request, found)


def _state(state: ClusterState) -> dict[str, Any]:
    return {
        "cluster": state.name,
        "followed": state.followed is not None,
        "problem": state.problem,
        "last": None if state.last is None else format_instant(int(state.last)),
        "queued": state.queued,
    }
