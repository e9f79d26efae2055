"""Requests beside what was asked for before: the unusual part is named, with what was usual."""

from pathlib import Path

import pytest

from tests.kits.ended_jobs import GIB, job, jobs, row
from tocsin.core.errors import ModelError
from tocsin.core.units import UNLIMITED
from tocsin.failure.unusual_requests import UnusualRequests
from tocsin.judge.check_data import CheckData

CPUS = (1, 2, 4, 8, 16, 32, 64)


@pytest.fixture(scope="module")
def unusual() -> UnusualRequests:
    """Ann asks for 1 to 64 CPUs and one hour, bob for 512; nobody in this partition for more."""
    ann = [job(n, req_cpus=CPUS[n % 7], time_limit=3600, req_memory=4 * GIB) for n in range(70)]
    bob = [job(100 + n, user="bob", name="large", req_cpus=512, time_limit=3600) for n in range(20)]
    return UnusualRequests.fit(jobs([*ann, *bob]))


def test_the_unusual_part_is_named_beside_what_was_usual(unusual: UnusualRequests) -> None:
    found = unusual.find(row(name="other", req_cpus=100_000, time_limit=3600))
    assert [each.part for each in found] == ["req_cpus"]
    assert found[0].text == "requests 100,000 CPUs; this user's 70 earlier jobs requested 1–64"
    assert found[0].score > 1


def test_the_closest_jobs_speak_and_the_most_unusual_part_comes_first(unusual: UnusualRequests) -> None:
    found = unusual.find(row(req_cpus=64, time_limit=3600 * 100, req_memory=64 * GIB))
    assert [each.part for each in found] == ["time_limit", "req_memory"]
    assert "this user's 70 earlier jobs of this name requested 01:00:00" in found[0].text
    assert found[1].text.startswith("requests 64G of memory per node; ")


def test_what_is_usual_is_not_unusual(unusual: UnusualRequests) -> None:
    assert unusual.find(row(req_cpus=16, time_limit=3600, req_memory=4 * GIB)) == []
    assert unusual.find(row(user="bob", name="large", req_cpus=512, time_limit=3600)) == []
    assert unusual.find(row(user="bob", name="large", req_cpus=600, time_limit=3600)) == [], "hardly more"


def test_too_little_is_unusual_as_well(unusual: UnusualRequests) -> None:
    assert unusual.find(row(user="bob", req_cpus=1, time_limit=3600))[0].text == (
        "requests 1 CPU; this user's 20 earlier jobs requested 512"
    )


def test_a_new_user_is_held_against_the_partition_alone(unusual: UnusualRequests) -> None:
    found = unusual.find(row(user="new", req_cpus=10**9, time_limit=3600))
    assert "the 90 earlier jobs in this partition requested 1–512" in found[0].text
    assert unusual.find(row(user="new", partition="new", req_cpus=10**9)) == []


@pytest.mark.parametrize("value", [None, 0, -5, UNLIMITED])
def test_what_says_nothing_is_not_unusual(unusual: UnusualRequests, value: int | None) -> None:
    assert unusual.find(row(req_cpus=value, time_limit=value, req_memory=value)) == []


def test_few_jobs_of_the_demo_are_unusual_and_all_come_back_from_disk(
    check_data: CheckData, tmp_path: Path
) -> None:
    fitted = UnusualRequests.fit(check_data.ended())
    fitted.save(tmp_path)
    assert UnusualRequests.load(tmp_path) == fitted
    later = check_data.log.filter(check_data.log["submit"] > check_data.cut)
    told = [fitted.find(each) for each in later.iter_rows(named=True)]
    assert 0 < sum(map(bool, told)) < 0.1 * len(told)


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "unusual_requests.json").write_text('{"version": 1, "summaries": {"name": [[1]]}}')
    with pytest.raises(ModelError, match=r"unusual_requests\.json cannot be read"):
        UnusualRequests.load(tmp_path)
