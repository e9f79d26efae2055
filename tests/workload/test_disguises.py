"""A miner whose command is hidden is never just fine: it is seen, or an open sign shows that something unread is run."""

import pytest
from bench import fresh_disguises
from tools.workload.miner_disguises import DISGUISES, script

from tocsin.core.verdict import SEEN_FROM
from tocsin.workload.screening import Screener, builtin


@pytest.fixture(scope="module")
def shipped() -> Screener:
    return builtin()


@pytest.mark.parametrize("name", DISGUISES)
def test_no_disguise_is_just_fine(name: str, shipped: Screener) -> None:
    [found] = shipped.screen([script(DISGUISES[name])])
    assert found.open or found.operations["cryptomining"] >= SEEN_FROM


def test_none_of_those_that_were_written_before_the_rules_were_read_is_just_fine(shipped: Screener) -> None:
    found = shipped.screen([fresh_disguises.script(name) for name in fresh_disguises.DISGUISES])
    fine = [
        name
        for name, each in zip(fresh_disguises.DISGUISES, found, strict=True)
        if not each.open and each.operations["cryptomining"] < SEEN_FROM
    ]
    assert fine == []
