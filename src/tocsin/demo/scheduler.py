"""The scheduler: by tier and age, with backfill around the first job that has to wait."""

from bisect import insort
from collections.abc import Iterator
from heapq import nsmallest

from tocsin.demo.jobs import Record, Request
from tocsin.demo.machine import NODE_TYPES, QUEUES, Host, Share

__all__ = ["Scheduler", "Start"]

DEPTH = 100  # pending jobs considered in one pass, as Slurm's bf_max_job_test
EXEMPT = 3600  # seconds for which a job is not preempted, as Slurm's PreemptExemptTime

_GIVE_WAY = {queue.name for queue in QUEUES.values() if queue.tier == 0}

Start = tuple[Record, list[Host], list[Record]]
"""A pending record (or one task of it, for an array), its nodes, and the jobs to preempt."""


class Scheduler:
    def __init__(self, hosts: dict[str, list[Host]]) -> None:
        self.hosts = hosts
        self.waiting: list[Record] = []
        self.open = True
        """Whether partitions start jobs."""

    def add(self, record: Record) -> None:
        insort(self.waiting, record, key=_order)

    def remove(self, record: Record) -> None:
        self.waiting.remove(record)

    def starts(self, now: int) -> Iterator[Start]:
        """The jobs that can start now; the caller starts each before it takes the next."""
        if not self.open:
            return
        blocked: set[tuple[object, ...]] = set()
        reserved: dict[str, dict[str, int]] = {}
        ready = [record for record in self.waiting if record.held is None and record.eligible <= now]
        for record in ready[:DEPTH]:
            request = record.request
            queue = QUEUES[request.partition]
            shape = (queue.name, _size(request), request.time_limit)
            while shape not in blocked and _may_start(record):
                found = self._place(request, now, reserved.get(queue.node_type, {}))
                if found is None:
                    blocked.add(shape)
                    if queue.node_type not in reserved:
                        reserved[queue.node_type] = self._reserve(request, now)
                    break
                yield record, *found

    def _place(
        self, request: Request, now: int, reserved: dict[str, int]
    ) -> tuple[list[Host], list[Record]] | None:
        """The first nodes that fit; a job of a higher tier may preempt those of tier 0."""
        queue = QUEUES[request.partition]
        share = NODE_TYPES[queue.node_type].share(request)
        end = now + request.time_limit
        hosts = [host for host in self.hosts[queue.node_type] if end <= reserved.get(host.name, end)]
        chosen = [host for host in hosts if host.fits(share)][: request.nodes]
        victims: list[Record] = []
        if queue.tier > 0:
            for host in hosts:
                if len(chosen) == request.nodes:
                    break
                pushed = _give_way(host, share, now)
                if pushed:
                    chosen.append(host)
                    victims.extend(pushed)
        return (chosen, victims) if len(chosen) == request.nodes else None

    def _reserve(self, request: Request, now: int) -> dict[str, int]:
        """The nodes reserved for the first waiting job, with the instant when all are free."""
        node_type = QUEUES[request.partition].node_type
        share = NODE_TYPES[node_type].share(request)
        hosts = [host for host in self.hosts[node_type] if host.up]
        soonest = nsmallest(request.nodes, ((_free_at(host, share, now), host.name) for host in hosts))
        if len(soonest) < request.nodes:
            return {}
        return {name: soonest[-1][0] for _, name in soonest}


def _order(record: Record) -> tuple[int, int, int]:
    return -QUEUES[record.request.partition].tier, record.submit, record.raw_id


def _size(request: Request) -> tuple[object, ...]:
    return request.nodes, request.cpus_per_node, request.memory, request.gpus_per_node, request.exclusive


def _may_start(record: Record) -> bool:
    if record.request.tasks and record.task is None:
        throttle = record.request.throttle
        return bool(record.waiting) and (not throttle or record.alive < throttle)
    return record.state == "PENDING"


def _give_way(host: Host, share: Share, now: int) -> list[Record]:
    """The tier-0 jobs to preempt on the host for this share; none if it fits, or if that is not enough."""
    movable = [
        record
        for record in host.jobs.values()
        if record.request.partition in _GIVE_WAY and (record.start or now) + EXEMPT <= now
    ]
    leaving = _leaving(host, movable[::-1], share) if movable and host.up else None
    return leaving or []


def _free_at(host: Host, share: Share, now: int) -> int:
    """When the host has room for this share if its jobs run to their limits."""
    leaving = _leaving(host, sorted(host.jobs.values(), key=_limit), share)
    return max(now, _limit(leaving[-1])) if leaving else now


def _leaving(host: Host, records: list[Record], share: Share) -> list[Record] | None:
    """The first of these records whose end frees this share; None if all together do not."""
    cpus, memory, gpus = share
    free_cpus, free_memory, free_gpus = host.free_cpus, host.free_memory, host.free_gpus
    for number, record in enumerate(records):
        if cpus <= free_cpus and memory <= free_memory and gpus <= free_gpus:
            return records[:number]
        more = host.node_type.share(record.request)
        free_cpus, free_memory, free_gpus = free_cpus + more[0], free_memory + more[1], free_gpus + more[2]
    return records if cpus <= free_cpus and memory <= free_memory and gpus <= free_gpus else None


def _limit(record: Record) -> int:
    return (record.start or 0) + record.request.time_limit
