import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.kits import recordings
from tests.kits.recordings import RELEASES, VERSIONS
from tocsin.core.errors import ClusterError, SourceError
from tocsin.core.frames import SCHEMA
from tocsin.core.intake import Rejects
from tocsin.core.units import UNLIMITED
from tocsin.sources import sacct_json
from tocsin.sources.json_replies import error_in, jobs_frame, notes_on_version, version_of, warning_texts
from tocsin.sources.json_stream import JsonObject, Member
from tocsin.sources.json_values import amount, array_text, gpus_in, limit, state_of
from tocsin.sources.rest_versions import ADAPTERS, NEWEST, adapter_for
from tocsin.sources.sacct import SacctFile
from tocsin.sources.sacct_json import SacctJsonFile

KEY = ["cluster", "job_id", "task", "submit"]


def jobs_of(family: str, version: str, what: str = "jobs") -> pl.DataFrame:
    adapter, rejects = ADAPTERS[version], Rejects()
    read = adapter.accounting_job if family == "slurmdb" else adapter.queue_job
    records = recordings.reply(family, version, what)["jobs"]
    frame = jobs_frame(records, read, first=1, rejects=rejects, source="rest").drop("_record")
    assert rejects.total == 0
    assert frame.schema == SCHEMA
    assert frame.height == len(records)
    return frame.sort(KEY)


def job(frame: pl.DataFrame, name: str) -> dict[str, Any]:
    """The job of this name; of an array, the part that waits."""
    wanted = frame.filter(
        (pl.col("name") == name) & (pl.col("array").is_not_null() | (pl.lit(name) != "heldarr"))
    )
    assert wanted.height == 1, f"{name}: {wanted.height}"
    return wanted.row(0, named=True)


def told_alike(one: pl.DataFrame, other: pl.DataFrame, *, but: set[str]) -> None:
    # The run time of a job that still runs depends on the second in which one asks.
    one, other = (
        jobs.with_columns(elapsed=pl.when(pl.col("outcome").is_not_null()).then("elapsed"))
        for jobs in (one, other)
    )
    differing = {name for name in SCHEMA if not one[name].equals(other[name])}
    assert differing == but


# --- every version tells the same jobs -------------------------------------------------------------


@pytest.mark.parametrize(
    ("family", "before", "after", "but"),
    [
        ("slurmdb", "v0.0.36", "v0.0.37", set()),
        ("slurmdb", "v0.0.37", "v0.0.38", set()),
        ("slurm", "v0.0.36", "v0.0.37", {"user"}),  # v0.0.36 tells the user's number only
        ("slurm", "v0.0.37", "v0.0.38", {"group"}),  # which v0.0.37 does not tell
        ("slurmdb", "v0.0.40", "v0.0.41", set()),
        ("slurmdb", "v0.0.41", "v0.0.42", set()),
        ("slurm", "v0.0.40", "v0.0.41", set()),
        ("slurm", "v0.0.41", "v0.0.42", set()),
        ("slurmdb", "v0.0.43", "v0.0.44", set()),
        ("slurmdb", "v0.0.44", "v0.0.45", set()),
        ("slurm", "v0.0.43", "v0.0.44", set()),
        ("slurm", "v0.0.44", "v0.0.45", {"exclusive"}),  # which v0.0.45 does not tell
    ],
)
def test_versions_that_one_slurmrestd_serves_tell_the_same_jobs(
    family: str, before: str, after: str, but: set[str]
) -> None:
    told_alike(jobs_of(family, before), jobs_of(family, after), but=but)


@pytest.mark.parametrize("version", VERSIONS)
def test_accounting_and_queue_tell_the_same_keys_times_and_outcomes_of_ended_jobs(version: str) -> None:
    columns = [
        *KEY,
        "raw_id",
        "start",
        "end",
        "outcome",
        "het_id",
        "het_offset",
        "time_limit",
        "req_memory",
        "req_cpus",
    ]
    accounting_job, queued = jobs_of("slurmdb", version), jobs_of("slurm", version)
    ended = queued.filter(pl.col("outcome").is_not_null()).select(columns)
    both = accounting_job.select(columns).join(ended.select(KEY), on=KEY, how="semi", nulls_equal=True)
    assert both.height >= 4
    assert both.equals(ended.sort(KEY))


@pytest.mark.parametrize("release", ["22.05", "24.11", "26.05"])
def test_sacct_json_is_what_slurmdbd_tells_over_rest(release: str) -> None:
    newest = max(version for version, of in RELEASES.items() if of == release)
    source = SacctJsonFile(recordings.FOLDER / release / "sacct.json.gz")
    batches = list(source.batches())
    jobs = pl.concat([batch.jobs for batch in batches]).sort(KEY)
    assert (source.rejects.total, source.notes) == (0, [])
    assert sum(batch.read for batch in batches) == batches[-1].position == jobs.height
    assert batches[-1].done == source.total
    shared = jobs_of("slurmdb", newest).select(KEY)
    told_alike(
        jobs.join(shared, on=KEY, how="semi", nulls_equal=True),
        jobs_of("slurmdb", newest).join(jobs.select(KEY), on=KEY, how="semi", nulls_equal=True),
        but={"source"},
    )


def test_sacct_text_and_sacct_json_of_one_moment_tell_the_same_jobs() -> None:
    folder = recordings.FOLDER / "22.05"
    text = pl.concat([b.jobs for b in SacctFile(folder / "sacct_all.txt.gz").batches()])
    told = pl.concat([b.jobs for b in SacctJsonFile(folder / "sacct.json.gz").batches()])
    same = text.select(KEY).join(told.select(KEY), on=KEY, how="inner", nulls_equal=True)
    assert same.height == text.height >= 17
    told = told.join(same, on=KEY, how="semi", nulls_equal=True)  # text loses a name with separators in it
    for name in ("start", "end", "outcome", "state", "eligible", "elapsed", "node_list", "time_limit", "req_memory",
                 "req_tres", "req_cpus", "alloc_cpus", "alloc_tres", "user", "het_id", "het_offset", "raw_id", "cpu_seconds",
                 "user_cpu_seconds", "system_cpu_seconds", "steps"):  # fmt: skip
        assert text.sort(KEY)[name].equals(told.sort(KEY)[name]), name
    said = told.filter(pl.col("exit_code").is_not_null()).sort(KEY)
    assert {"timeout", "cancelme", "segv"} <= set(said["name"])
    certain = text.join(said.select(KEY), on=KEY, how="semi", nulls_equal=True).sort(KEY)
    assert certain.select("exit_code", "exit_signal").equals(said.select("exit_code", "exit_signal"))
    queued = jobs_of("slurm", "v0.0.38").join(same, on=KEY, how="semi", nulls_equal=True)
    assert {"timeout", "e139"} <= set(queued["name"])
    for name in ("state", "exit_code", "exit_signal"):
        assert text.sort(KEY)[name].equals(queued.sort(KEY)[name]), name


@pytest.mark.parametrize(
    ("name", "read"), [("None", "None"), ("N/A", "N/A"), ("x\ny", "x y"), ("(null)", None), ("", None)]
)
def test_a_name_is_read_as_sacct_prints_it(name: str, read: str | None) -> None:
    for family, version in (("slurmdb", "v0.0.38"), ("slurm", "v0.0.38"), ("slurm", "v0.0.42")):
        adapter = ADAPTERS[version]
        record = recordings.reply(family, version, "jobs")["jobs"][0] | {"name": name}
        job = adapter.accounting_job(record) if family == "slurmdb" else adapter.queue_job(record)
        assert job["name"] == read


# --- what the jobs of the recordings are -----------------------------------------------------------


def test_22_05_accounting_says_what_happened_and_leaves_out_what_it_gets_wrong() -> None:
    jobs = jobs_of("slurmdb", "v0.0.38")
    failed, oom, segv, done = (job(jobs, name) for name in ("fail", "oom", "segv", "memcpu"))
    # The script ended with exit code 3; slurmrestd 22.05 says 0.
    assert (failed["outcome"], failed["exit_code"]) == ("failed", None)
    assert (oom["outcome"], oom["exit_code"], oom["exit_signal"]) == ("out_of_memory", 0, 125)
    assert (segv["outcome"], segv["exit_signal"]) == ("failed", 11)
    assert (done["outcome"], done["exit_code"], done["exit_signal"]) == ("completed", 0, 0)
    assert (done["req_memory"], done["req_cpus"], done["req_nodes"]) == (300 * 2**20, 4, 2)
    assert done["steps"] == 3
    assert job(jobs, "timeout")["time_limit"] == 60


def test_a_job_cancelled_before_it_ran_has_no_start() -> None:
    for family in ("slurmdb", "slurm"):
        cancelled = jobs_of(family, "v0.0.38").filter(pl.col("outcome") == "cancelled").row(0, named=True)
        assert cancelled["start"] is None
        assert cancelled["node_list"] is None
        assert cancelled["end"] is not None


def test_array_tasks_have_the_arrays_id_and_their_own_raw_id() -> None:
    tasks = jobs_of("slurmdb", "v0.0.38").filter(pl.col("name") == "arr")
    assert tasks["task"].to_list() == [1, 2, 3, 4]
    assert tasks["job_id"].n_unique() == 1
    assert tasks["raw_id"].n_unique() == 4


def test_components_of_a_het_job_are_jobs_with_their_own_id() -> None:
    parts = jobs_of("slurm", "v0.0.38").filter(pl.col("name") == "het").sort("het_offset")
    first = parts["job_id"][0]
    assert parts["job_id"].to_list() == [first, first + 1]
    assert parts["het_id"].to_list() == [first, first]


def test_a_pending_array_is_one_record_with_its_tasks() -> None:
    held = job(jobs_of("slurm", "v0.0.38"), "heldarr")
    assert held["array"] == "5,7"
    assert held["array_tasks"] == 2
    assert held["task"] is held["start"] is held["end"] is held["outcome"] is None


def test_accounting_of_22_05_gives_a_pending_arrays_tasks_as_a_bitmap() -> None:
    jobs = jobs_of("slurmdb", "v0.0.38", "submitted")
    assert job(jobs, "heldarr")["array"] == "5,7"
    assert array_text("0x12492", 1) == "1-16:3%1"
    assert array_text("0x1e") == "1-4"
    assert array_text("0x2da") == "1,3-4,6-7,9"
    assert array_text("1-9%2", 2) == "1-9%2"
    assert array_text("0xnonsense") is None


def test_the_queue_tells_the_request_and_no_guesses() -> None:
    held = job(jobs_of("slurm", "v0.0.38"), "held")
    assert held["state"] == "PENDING"
    assert (held["time_limit"], held["time_min"]) == (420, 180)
    assert (held["req_gres"], held["req_gpus"]) == ("gpu:1", 1)
    assert (held["req_node_list"], held["exclude_nodes"]) == ("n1", "n3")
    begin = job(jobs_of("slurm", "v0.0.38"), "begin")
    assert begin["start"] is begin["end"] is None
    assert job(jobs_of("slurm", "v0.0.38"), "excl")["exclusive"] is True
    assert held["exclusive"] is False


def test_24_11_tells_exit_codes_and_the_command_line() -> None:
    jobs = jobs_of("slurmdb", "v0.0.42")
    assert job(jobs, "fail")["exit_code"] == 1
    assert (job(jobs, "oom")["exit_code"], job(jobs, "oom")["exit_signal"]) == (0, 9)
    assert job(jobs, "ok")["submit_line"] == "sbatch -o /home/alice/%x-%j.out /lab/jobs/ok.sh"
    assert job(jobs, "ok")["max_memory"] == 5046272


def test_environment_and_comments_never_get_in() -> None:
    for version in VERSIONS:
        for family in ("slurm", "slurmdb"):
            words = jobs_of(family, version).write_csv()
            assert "hello comment" not in words
            assert "gate ok" not in words


# --- values ----------------------------------------------------------------------------------------


def test_numbers_limits_and_states_in_all_their_shapes() -> None:
    assert amount(7) == amount({"set": True, "infinite": False, "number": 7}) == amount("7") == 7
    assert amount({"set": False, "infinite": False, "number": 7}) is None
    assert amount(2**64 - 2) is None
    assert limit(10) == limit({"set": True, "infinite": False, "number": 10}) == 600
    assert limit({"set": True, "infinite": True, "number": 0}) == UNLIMITED
    assert limit(None) is limit(4294967295) is None
    assert state_of(["CANCELLED", "COMPLETING"], requeued=True) == "CANCELLED"
    assert state_of(["COMPLETING", "RUNNING"], requeued=False) == "RUNNING"
    assert state_of(["PENDING", "REQUEUED"], requeued=True) == "REQUEUED"
    assert state_of(["PENDING", "REQUEUED"], requeued=False) == "PENDING"
    assert state_of("OUT_OF_MEMORY", requeued=True) == "OUT_OF_MEMORY"
    assert gpus_in("gpu:a100:4(S:0,2),shard:8,gpu:2") == 6


# --- versions, errors, warnings --------------------------------------------------------------------


def test_a_newer_version_is_read_by_the_newest_adapter_and_said() -> None:
    assert adapter_for("v0.0.99").version == NEWEST
    assert adapter_for("v0.0.39").version == "v0.0.40"
    assert adapter_for("v0.0.38").version == "v0.0.38"
    assert notes_on_version("v0.0.42") == []
    assert "v0.0.99" in notes_on_version("v0.0.99")[0]
    assert version_of({"plugin": {"data_parser": "data_parser/v0.0.42", "type": ""}}) == "v0.0.42"
    assert version_of({"plugin": {"type": "openapi/dbv0.0.38"}}) == "v0.0.38"
    assert version_of({"plugin": []}) is None


def test_errors_are_sentences_with_their_number_and_nothing_found_is_none() -> None:
    refused = error_in(
        [{"description": "job update failed", "error_number": 2084, "error": "Job has already finished"}]
    )
    assert str(refused) == "Slurm reports: job update failed: Job has already finished (error 2084)"
    assert error_in([{"error": "Nothing found with query", "error_number": 9003}]) is None
    assert error_in([]) is error_in(None) is None
    assert isinstance(error_in([{"error": "Unspecified error", "errno": -1}]), ClusterError)
    assert warning_texts([{"description": "old plug-in", "source": "x"}]) == ["Slurm warns: old plug-in"]


def test_an_empty_result_is_no_warning_and_repeated_ones_are_one() -> None:
    """Measured on 24.11: each day without jobs brought a warning with an address of its own."""
    empty = [{"description": "slurmdb_jobs_get(0x7fc52c004b50) found nothing", "source": "_dump_jobs"}]
    assert warning_texts(empty) == []
    warned = [
        {"description": f"parse_x({address}) is old"} for address in ("0x7fc52c004b50", "0x5637e91e4cb0")
    ]
    assert warning_texts(warned) == ["Slurm warns: parse_x is old"]


# --- files -----------------------------------------------------------------------------------------


def write(path: Path, **members: Any) -> Path:
    path.write_text(json.dumps(members))
    return path


RECORD = recordings.reply("slurmdb", "v0.0.42", "jobs")["jobs"][0]


def record(job_id: Any, **more: Any) -> dict[str, Any]:
    return {**RECORD, "job_id": job_id, **more}


def test_bad_records_are_counted_by_reason_and_the_good_ones_kept(tmp_path: Path) -> None:
    good = record(1)
    times = good["time"]
    records = [
        good,
        "no record",
        record(None),
        record(4, time={**times, "submission": 0}),
        record(5, time={**times, "start": "yesterday"}),
        record(6, time={**times, "end": times["start"] - 5}),
        record(7),
        record(7),
        record(9, cluster=""),
    ]
    source = SacctJsonFile(
        write(tmp_path / "a.json", jobs=records, errors=[], warnings=[{"description": "hm"}])
    )
    jobs = pl.concat([batch.jobs for batch in source.batches()])
    assert jobs["job_id"].to_list() == [1, 7]
    assert source.rejects.lines == {
        "not a JSON object": [2],
        "no job id": [3],
        "no submit time": [4],
        "text in a number field": [5],
        "times that run backwards": [6],
        "job seen before in this file": [8],
        "no cluster name": [9],
    }
    assert "Slurm warns: hm" in source.notes
    named = SacctJsonFile(tmp_path / "a.json", cluster="lab")
    assert pl.concat([batch.jobs for batch in named.batches()])["job_id"].to_list() == [1, 7, 9]


def test_a_file_that_breaks_off_keeps_the_records_before_and_says_so(tmp_path: Path) -> None:
    whole = json.dumps({"jobs": [record(n) for n in range(1, 4)], "errors": []}).encode()
    packed = gzip.compress(b"\n".join([whole] * 1))
    for name, data in (("a.json", whole[: len(whole) // 2]), ("a.json.gz", packed[: len(packed) - 40])):
        file = tmp_path / name
        file.write_bytes(data)
        source = SacctJsonFile(file)
        jobs = pl.concat([batch.jobs for batch in source.batches()])
        assert 1 <= jobs.height < 3, name
        assert source.rejects.total == 1
        assert any("was read up to record" in note for note in source.notes)


def test_what_is_no_sacct_json_is_refused_in_a_sentence(tmp_path: Path) -> None:
    for content in ("JobID|State\n1|COMPLETED\n", "[1, 2]"):
        file = tmp_path / "x"
        file.write_text(content)
        with pytest.raises(SourceError, match="sacct --json"):
            list(SacctJsonFile(file).batches())
    file = tmp_path / "empty"
    file.write_text("")
    empty = SacctJsonFile(file)
    assert list(empty.batches()) == []
    assert (empty.rejects.total, empty.notes) == (0, [f"{file} has no jobs"])
    file.write_text('{"jobs": [{"job_id": 1, "clus')
    with pytest.raises(SourceError, match="before the first job"):
        list(SacctJsonFile(file).batches())
    with pytest.raises(SourceError):
        SacctJsonFile(tmp_path)


def test_a_named_cluster_is_the_only_one_that_is_read_and_an_ended_job_stays_ended(tmp_path: Path) -> None:
    living = {**record(1), "state": {"current": ["RUNNING"]}}
    file = write(tmp_path / "a.json", jobs=[record(1), living])
    mine = record(1)["cluster"]
    source = SacctJsonFile(file, cluster=mine)
    jobs = pl.concat([batch.jobs for batch in source.batches()])
    assert (jobs.height, jobs["outcome"].null_count()) == (1, 0)
    other = SacctJsonFile(file, cluster="gamma")
    assert sum(batch.jobs.height for batch in other.batches()) == 0
    assert other.rejects.counts == {'not of cluster "gamma"': 2}


def test_errors_in_a_file_are_told_after_its_jobs(tmp_path: Path) -> None:
    file = write(
        tmp_path / "a.json", jobs=[record(1)], errors=[{"error": "no database", "error_number": 7000}]
    )
    batches = SacctJsonFile(file).batches()
    assert next(batches).jobs.height == 1
    with pytest.raises(ClusterError, match=r"no database \(error 7000\)"):
        next(batches)


def test_an_interrupted_import_goes_on_where_it_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sacct_json, "BLOCK", 50)
    records = [record(n if n % 20 else None) for n in range(1, 241)]
    file = write(tmp_path / "a.json", jobs=records)
    whole = SacctJsonFile(file)
    batches = list(whole.batches())
    assert len(batches) > 2
    again = SacctJsonFile(file)
    rest = list(again.batches(resume=batches[0].position))
    assert pl.concat([b.jobs for b in rest]).equals(pl.concat([b.jobs for b in batches[1:]]))
    assert [b.position for b in rest] == [b.position for b in batches[1:]]
    assert again.identity == whole.identity
    assert again.rejects.total < whole.rejects.total == 12


# --- the stream ------------------------------------------------------------------------------------

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text(max_size=4), JSON, max_size=5), st.integers(1, 40), st.sampled_from([None, 2]))
@settings(deadline=None, max_examples=100)
def test_the_stream_reads_what_json_reads_however_it_is_cut(
    value: dict[str, Any], size: int, indent: int | None
) -> None:
    data = json.dumps(value, indent=indent, ensure_ascii=False).encode("utf-8", "replace")
    found: dict[str, Any] = {key: [] for key, item in value.items() if isinstance(item, list)}
    stream = JsonObject(data[at : at + size] for at in range(0, len(data), size))
    for key, place, item in stream.members():
        if place is None:
            found[key] = item
        else:
            found[key].append(item)
    assert stream.broken is None
    assert found == json.loads(data)


def test_hostile_streams_end_in_words_and_not_in_memory() -> None:
    for data, words in (
        (b'{"jobs": [' + b"[" * 200_000, "nested too deeply"),
        (b'{"jobs": ["' + b"x" * 5000, "more than 1000 characters"),
        (b'{"jobs" 1}', "invalid JSON"),
        (b'{"jobs": [1 2]}', "invalid JSON"),
    ):
        stream = JsonObject(
            [data[at : at + 64] for at in range(0, len(data), 64)], max_record=1000 if b"x" in data else 10**7
        )
        list(stream.members())
        assert words in (stream.broken or ""), data[:20]
    huge = JsonObject([b'{"a": ' + b"9" * 5000 + b"}"])
    assert list(huge.members()) == [Member("a", None, None)]


# --- any values in any field -----------------------------------------------------------------------


ODD = JSON | st.sampled_from(
    [2**64, -(2**70), "\ud800", "UNLIMITED", {"set": 1}, float("inf"), {"number": "x"}]
)


def spoil(value: Any, draw: Callable[[Any], Any]) -> Any:
    """The value with something else in a tenth of its places."""
    if draw(st.integers(0, 9)) == 0:
        return draw(ODD)
    if isinstance(value, dict):
        return {key: spoil(item, draw) for key, item in value.items()}
    return [spoil(item, draw) for item in value] if isinstance(value, list) else value


@given(st.data(), st.sampled_from(VERSIONS), st.sampled_from(["slurm", "slurmdb"]))
@settings(
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.large_base_example],
)
def test_nothing_in_a_record_raises(data: st.DataObject, version: str, family: str) -> None:
    base = {
        **recordings.reply(family, version, "jobs")["jobs"][0],
        "environment": None,
        "job_resources": None,
    }
    spoilt = spoil({**base, "steps": base.get("steps", [])[:1]}, data.draw)
    adapter, rejects = ADAPTERS[version], Rejects()
    read = adapter.accounting_job if family == "slurmdb" else adapter.queue_job
    frame = jobs_frame([spoilt], read, first=1, rejects=rejects, source="rest")
    assert frame.height + rejects.total == 1
    assert frame.drop("_record").schema == SCHEMA


@given(
    st.sampled_from(VERSIONS),
    st.lists(st.dictionaries(st.text(max_size=8), ODD, max_size=3) | ODD, max_size=4),
)
@settings(deadline=None, max_examples=60)
def test_no_record_of_any_shape_raises(version: str, records: list[Any]) -> None:
    rejects = Rejects()
    frame = jobs_frame(records, ADAPTERS[version].queue_job, first=1, rejects=rejects, source="rest")
    assert frame.height + rejects.total == len(records)
