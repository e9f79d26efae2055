"""The database: schema, migration, locking and errors."""

import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import sqlalchemy as sa

from tests.kits.job_frames import frame
from tests.services.postgres import Postgres
from tocsin.core.errors import SettingsError, StoreError
from tocsin.store import jobs
from tocsin.store.database import Store, open_store
from tocsin.store.home import Home
from tocsin.store.migrations import HEAD, VERSION_TABLE
from tocsin.store.tables import METADATA


def test_a_new_store_has_the_tables_of_the_metadata_and_no_others(store: Store) -> None:
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    with store.reading() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
        assert compare_metadata(context, METADATA) == []


def test_HEAD_is_the_last_migration() -> None:
    from alembic.script import ScriptDirectory

    import tocsin.store.migrations as migrations

    assert ScriptDirectory(str(Path(migrations.__file__).parent)).get_heads() == [HEAD]


def test_what_was_stored_is_there_when_the_store_is_opened_again(url: str) -> None:
    with open_store(url) as store:
        jobs.upsert(store, frame({"job_id": 7}))
    with open_store(url) as store:
        assert jobs.load(store)["job_id"].to_list() == [7]


def test_an_up_to_date_store_opens_without_alembic(url: str) -> None:
    open_store(url).close()
    program = (
        "import sys; from tocsin.store.database import open_store; open_store(sys.argv[1]).close();"
        "assert 'alembic' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program, url], check=True)


def test_processes_that_open_a_new_store_at_once_all_succeed(url: str) -> None:
    program = "import sys; from tocsin.store.database import open_store; sys.stdin.read(); open_store(sys.argv[1]).close()"
    racers = [
        subprocess.Popen([sys.executable, "-c", program, url], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(3)
    ]
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.close()
        racer.stdin = None
    assert [(r.communicate()[1], r.returncode) for r in racers] == [(b"", 0)] * 3
    open_store(url).close()


def test_a_newer_store_is_left_alone(url: str) -> None:
    with open_store(url) as store, store.writing() as connection:
        connection.exec_driver_sql(f"UPDATE {VERSION_TABLE} SET version_num = '9999'")
    with pytest.raises(StoreError, match=r"schema 9999, newer .* upgrade tocsin"):
        open_store(url)


def test_a_failed_transaction_leaves_nothing(store: Store) -> None:
    def fail() -> None:
        with store.writing() as connection:
            jobs.merge_in(connection, frame({}))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert jobs.load(store).is_empty()


def test_a_locked_store_is_said_so_after_the_timeout(url: str) -> None:
    with open_store(url) as holder, open_store(url, timeout=0.2) as waiter, holder.writing() as connection:
        jobs.merge_in(connection, frame({}))
        with pytest.raises(StoreError, match=r"locked by another process for 0\.2 s"):
            jobs.upsert(waiter, frame({}))
        assert jobs.load(waiter).is_empty()  # readers do not wait


def test_two_writers_of_the_same_jobs_lose_and_double_nothing(url: str) -> None:
    open_store(url).close()
    errors: list[BaseException] = []

    def write(source: str) -> None:
        try:
            with open_store(url) as store:
                for first in range(0, 200, 10):
                    rows = [{"job_id": first + i, "source": source, "elapsed": 1} for i in range(10)]
                    jobs.upsert(store, frame(*rows))
        except BaseException as error:
            errors.append(error)

    writers = [threading.Thread(target=write, args=(source,)) for source in ("sacct", "rest")]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert errors == []
    with open_store(url) as store:
        assert sorted(jobs.load(store)["job_id"]) == list(range(200))


def test_readers_see_one_moment(store: Store) -> None:
    jobs.upsert(store, frame({"job_id": 1}))
    batches = jobs.scan(store, batch=1)
    next(batches)
    jobs.upsert(store, frame({"job_id": 2}))
    assert list(batches) == []


@pytest.mark.parametrize(
    "url", ["postgresql://ana:secret@db/tocsin", "postgresql://ana@db/tocsin?password=secret"]
)
def test_a_password_in_the_url_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(SettingsError, match=r"store\.password_file") as refused:
        open_store(url)
    assert "secret" not in str(refused.value)


def test_a_password_that_is_handed_in_opens_the_store(postgres: Postgres) -> None:
    with_password = sa.make_url(postgres.tcp_url(postgres.new_database()))
    bare = with_password._replace(password=None).render_as_string()
    with open_store(bare, password=postgres.password) as store:
        assert postgres.password not in store.place
    with pytest.raises(StoreError, match=r"store\.password_file") as refused:
        open_store(bare, password="wrong")
    assert "wrong" not in str(refused.value)


@pytest.mark.parametrize(
    "url", ["tocsin.db", "mysql://host/db", "sqlite://", "sqlite:///:memory:", "", "://"]
)
def test_other_addresses_are_refused(url: str) -> None:
    with pytest.raises(SettingsError, match="sqlite:////path"):
        open_store(url)


def test_postgres_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot reach the store"):
        open_store(f"postgresql://ana@/tocsin?host={tmp_path}")


def test_a_missing_driver_is_said_with_the_command_that_mends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(StoreError, match=r"pip install 'tocsin\[postgres\]'"):
        open_store("postgresql://ana@db/tocsin")


def test_a_file_that_is_no_database_is_said_so_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "tocsin.db"
    path.write_text("dear diary " * 1000)
    with pytest.raises(StoreError, match="file is not a database"):
        open_store(f"sqlite:///{path}")
    assert path.read_text().startswith("dear diary")


def test_a_folder_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot open the store"):
        open_store(f"sqlite:///{tmp_path}/nowhere/tocsin.db")


def test_the_embedded_store_lets_readers_and_a_writer_work_side_by_side(home: Home) -> None:
    open_store(home.url).close()
    with sqlite3.connect(home.database) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    connection.close()


def test_a_thread_that_outlives_the_store_leaves_no_connection_open(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path / 'store.db'}")
    with store.reading() as connection:
        raw = connection.connection.dbapi_connection
        store.close()
    assert raw is not None
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        raw.execute("SELECT 1")
