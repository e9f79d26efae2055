"""Actions in the store: one of each kind per job, changed step by step, on each database."""

from typing import Any

import pytest
import sqlalchemy as sa

from tests.kits.watching import NOON, frame
from tocsin.core.actions import ActionKind, ActionStatus, PlannedAction
from tocsin.core.errors import NotFound
from tocsin.core.ports import Subscription
from tocsin.core.stages import Stage
from tocsin.store import actions, audit, outbox
from tocsin.store.database import Store
from tocsin.store.home import Home
from tocsin.store.jobs import Filter, load, merge_in
from tocsin.store.migrations import VERSION_TABLE
from tocsin.store.retention import prune


def planned(number: int = 1, **more: Any) -> PlannedAction:
    values: dict[str, Any] = {
        "job": f"lab:{number}@{NOON}",
        "kind": ActionKind.HOLD,
        "status": ActionStatus.PLANNED,
        "at": NOON,
        "expires": NOON + 60,
        "reason": "mining",
        "detector": "workload",
        "finding": "rogue",
        "stage": Stage.SUBMIT,
        "user": "ann",
    }
    return PlannedAction(**{**values, **more})


def plan(store: Store, *all_planned: PlannedAction, **more: Any) -> list[bool]:
    with store.writing() as connection:
        return [actions.plan(connection, each, **more) for each in all_planned]


def test_a_job_gets_one_action_of_each_kind(store: Store) -> None:
    assert plan(store, planned(), planned(), planned(kind=ActionKind.COMMENT), planned(2)) == [
        True,
        False,
        True,
        True,
    ]
    assert [action.kind for action in actions.list_actions(store, limit=2)] == ["comment", "hold"]
    assert actions.open_clusters(store) == ["lab"]
    with pytest.raises(NotFound, match="no action 9"):
        actions.find(store, 9)


def test_of_two_who_settle_an_action_one_is_told_that_it_was_late(store: Store) -> None:
    plan(store, planned())
    [action] = actions.open_actions(store, "lab")
    assert actions.settle(store, action, ActionStatus.DONE, at=NOON + 1, who="ann")
    assert not actions.settle(store, action, ActionStatus.UNDONE, at=NOON + 2, who="bob")
    assert [(entry.who, entry.what) for entry in audit.read(store)] == [
        ("ann", "hold done"),
        ("policy", "hold planned"),
    ]


def test_an_action_marks_its_job_and_no_other(store: Store) -> None:
    with store.writing() as connection:
        merge_in(connection, frame({"job_id": 1}, {"job_id": 2}, {"job_id": 1, "submit": NOON - 5}))
    plan(store, planned())
    [action] = actions.open_actions(store, "lab")
    actions.settle(store, action, ActionStatus.DONE, at=NOON + 1, intervened=True)
    actions.mark_tasks(store, "lab", NOON)
    found = load(store, Filter(clusters=["lab"]), ["job_id", "submit", "intervened"])
    assert {row[:2]: row[2] for row in found.rows()} == {
        (1, NOON): True,
        (2, NOON): None,
        (1, NOON - 5): None,
    }


def test_sinks_hear_of_what_is_done_and_not_of_what_is_only_recorded(store: Store) -> None:
    sinks = {"log": Subscription(kinds=("action",), levels=(), most=100)}
    plan(store, planned(), planned(2, status=ActionStatus.SHADOW), sinks=sinks)
    [message] = outbox.waiting(store, "log", 10)
    assert (message.kind, message.document["job"], message.document["status"]) == (
        "action",
        f"lab:1@{NOON}",
        "planned",
    )


def test_actions_are_pruned_with_their_jobs(store: Store, home: Home) -> None:
    with store.writing() as connection:
        merge_in(
            connection,
            frame({"job_id": 1, "outcome": "failed", "state": "FAILED", "end": NOON + 9}, {"job_id": 2}),
        )
    plan(store, planned(), planned(2))
    prune(store, home, before=NOON + 10)
    assert [str(action.job) for action in actions.list_actions(store)] == [f"lab:2@{NOON}"]


def test_an_older_store_gets_the_table(store: Store, url: str) -> None:
    from tocsin.store.database import open_store

    with store.writing() as connection:
        connection.exec_driver_sql("DROP TABLE actions")
        connection.execute(sa.text(f"UPDATE {VERSION_TABLE} SET version_num = '0002'"))
    store.close()
    with open_store(url) as opened:
        assert plan(opened, planned()) == [True]
