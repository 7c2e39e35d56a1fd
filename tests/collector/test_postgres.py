# SPDX-License-Identifier: Apache-2.0
"""Reports in a PostgreSQL server: kept once, whoever writes, and neither order nor time of a batch."""

import re
import signal
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import psycopg
import pytest

from sfumato.collector import postgres as module
from sfumato.collector.postgres import TABLE, PostgresStore, name_of, read
from sfumato.collector.store import StoreFailed
from sfumato.errors import WrongUse
from sfumato.telemetry import Aggregator
from tests.collector.batches import asked, batch, intake, rows, sealed_batch, sealed_task
from tests.collector.servers import own_server
from tests.contracts.postgres import Cluster
from tests.contracts.proxy import Cut, Wire

SIGNED = asked()
TASK = SIGNED.task


@pytest.fixture
def store(database: str) -> Iterator[PostgresStore]:
    with PostgresStore(database) as found:
        yield found


def kept(database: str, period: int = 1) -> list[bytes]:
    """The reports of a period, in the order in which they lie in the table."""
    return [each for part in read(database, TASK, period) for each in part.to_pylist()]


def test_what_is_kept_is_kept_once_whoever_stores_it(database: str, store: PostgresStore) -> None:
    reports = batch(TASK, 20)
    one = intake(store, SIGNED)
    assert one.take(b"".join(reports[:12])) == 12
    assert one.take(b"".join(reports[:1] * 3)) == 0
    with PostgresStore(database) as other:
        assert intake(other, SIGNED).take(b"".join(reports)) == 8
    assert one.take(b"".join(reports)) == 0
    assert sorted(kept(database)) == sorted(reports)
    sums = Aggregator(TASK, 1)
    assert sum(sums.add_many(part) for part in read(database, TASK, 1)) == 20


def test_a_changed_report_of_a_known_id_is_dropped(database: str, store: PostgresStore) -> None:
    (first,) = batch(TASK, 1)
    other = first[:-1] + bytes([(first[-1] + 1) % 3])
    assert store.append(TASK, 1, rows([first])) == 1
    assert store.append(TASK, 1, rows([other])) == 0
    # the same id in another period is another report
    assert store.append(TASK, 2, rows([other])) == 1
    assert kept(database) == [first] and kept(database, 2) == [other]


def test_a_mutant_without_the_index_is_noticed(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MAKE", module._MAKE[:-1])
    monkeypatch.setattr(module, "_ADD", module._ADD.partition(" ON CONFLICT")[0])
    reports = batch(TASK, 3)
    with PostgresStore(database) as store:
        store.append(TASK, 1, rows(reports))
        store.append(TASK, 1, rows(reports))
    assert len(kept(database)) == 6


def test_a_batch_lies_in_the_order_of_its_ids(database: str, store: PostgresStore) -> None:
    # that they come in this order by chance has a probability of 1/50!
    reports = batch(TASK, 50)
    store.append(TASK, 1, rows(reports))
    assert kept(database) == sorted(reports, key=lambda report: report[13:29]) != reports


def test_sealed_reports_are_kept_once_too(database: str, store: PostgresStore) -> None:
    task = sealed_task().task
    reports = sealed_batch(task, 5)
    assert store.append(task, 0, rows(reports)) == 5
    assert store.append(task, 0, rows(reports[2:] + sealed_batch(task, 1))) == 1
    assert sum(len(part) for part in read(database, task, 0)) == 6


def test_no_column_holds_a_time_or_an_address(database: str, store: PostgresStore) -> None:
    with psycopg.connect(database) as connection:
        found = connection.execute(
            "SELECT column_name, data_type FROM information_schema.columns "
            "WHERE table_schema = 'sfumato_telemetry' ORDER BY ordinal_position"
        ).fetchall()
    assert found == [("task", "text"), ("period", "bigint"), ("report", "bytea")]
    assert name_of(TASK).startswith("emoji-")


def test_the_order_of_batches_is_forgotten_as_the_page_says(
    database: str, store: PostgresStore
) -> None:
    page = Path("docs/collector.md").read_text(encoding="utf-8")
    statements = re.search("```sql\n(.*?)```", page, re.DOTALL)
    assert statements is not None
    batches = [batch(TASK, 20) for _ in range(3)]
    for reports in batches:
        store.append(TASK, 1, rows(reports))
    store.append(TASK, 3, rows(batch(TASK, 2)))
    text = statements[1].replace("emoji-0123456789abcdef", name_of(TASK))
    with psycopg.connect(database, autocommit=True) as connection:
        writers = "SELECT count(DISTINCT xmin::text) FROM sfumato_telemetry.reports"
        assert connection.execute(writers).fetchone() == (4,)
        for statement in text.replace("period = 3", "period = 1").split(";"):
            connection.execute(statement)
        assert connection.execute(writers).fetchone() == (2,)
    found = kept(database)
    assert found == sorted(chain.from_iterable(batches))
    assert intake(store, SIGNED).take(b"".join(found)) == 0


@pytest.mark.parametrize("where", Cut)
def test_a_connection_that_breaks_acknowledges_nothing_and_loses_nothing(
    database: str, postgres: Cluster, where: Cut
) -> None:
    """Also where the server has stored the batch, and its reply was lost."""
    reports = batch(TASK, 8)
    with Wire(postgres.socket) as wire, PostgresStore(wire.url(database)) as store:
        one = intake(store, SIGNED)
        assert one.take(b"".join(reports[:3])) == 3
        # the server says INSERT too, when it has committed
        wire.cut_at(b"INSERT 0" if where is Cut.AFTER_COMMIT else b"INSERT", where)
        with pytest.raises(StoreFailed):
            one.take(b"".join(reports))
        assert wire.cuts == 1
        assert len(kept(database)) == (8 if where is Cut.AFTER_COMMIT else 3)
        one.take(b"".join(reports))
    assert sorted(kept(database)) == sorted(reports)


def test_a_server_that_ends_the_connection_takes_the_next_batch(
    database: str, store: PostgresStore
) -> None:
    reports = batch(TASK, 6)
    one = intake(store, SIGNED)
    assert one.take(b"".join(reports[:4])) == 4
    with psycopg.connect(database) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE application_name = 'sfumato'"
        )
    with pytest.raises(StoreFailed):
        one.take(b"".join(reports))
    assert one.take(b"".join(reports)) == 2 and sorted(kept(database)) == sorted(reports)


@pytest.mark.long
def test_a_server_that_is_gone_takes_nothing_until_it_is_back() -> None:
    with own_server() as server:
        address = server.url("postgres")
        reports = batch(TASK, 6)
        with PostgresStore(address) as store:
            one = intake(store, SIGNED)
            assert one.take(b"".join(reports[:4])) == 4
            server.stop(signal.SIGQUIT)
            for _ in range(2):
                with pytest.raises(StoreFailed):
                    one.take(b"".join(reports))
            with pytest.raises(WrongUse, match="cannot be used"):
                list(read(address, TASK, 1))
            server.start()
            assert one.take(b"".join(reports)) == 2
            assert sorted(kept(address)) == sorted(reports)


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("synchronous_commit = off", "could lose"),
        ("log_statement = 'mod'", "would keep when"),
        ("log_min_duration_statement = 0", "would keep when"),
        ("log_min_duration_sample = 0", "would keep when"),
        ("log_transaction_sample_rate = 0.01", "would keep when"),
    ],
)
def test_a_server_that_loses_reports_or_keeps_times_is_refused(
    database: str, setting: str, words: str
) -> None:
    def change(what: str) -> None:
        with psycopg.connect(database) as connection:
            connection.execute(f"ALTER ROLE sfumato {what}")

    name = setting.partition(" ")[0]
    change(f"SET {setting}")
    try:
        with pytest.raises(WrongUse, match=words):
            PostgresStore(database)
        if name != "synchronous_commit":
            change("SET log_parameter_max_length = 0")
            PostgresStore(database).close()
    finally:
        change(f"RESET {name}")
        change("RESET log_parameter_max_length")


def test_a_server_that_may_not_be_used_is_refused_without_its_words(database: str) -> None:
    with pytest.raises(WrongUse, match="cannot be used") as refused:
        PostgresStore(database.replace("sfumato@", "nobody-here:secret@"))
    assert "secret" not in str(refused.value) and "nobody-here" not in str(refused.value)
    with pytest.raises(WrongUse, match="cannot be used"):
        list(read(database, TASK, 1))


def test_a_table_that_is_gone_is_a_failure_and_no_loss(database: str, store: PostgresStore) -> None:
    with psycopg.connect(database) as connection:
        connection.execute(f"DROP TABLE {TABLE}")
    with pytest.raises(StoreFailed):
        store.append(TASK, 1, rows(batch(TASK, 1)))


def test_a_table_that_a_crash_empties_is_refused(database: str, store: PostgresStore) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("ALTER TABLE sfumato_telemetry.reports SET UNLOGGED")
    with pytest.raises(WrongUse, match="a crash of the server empties"):
        PostgresStore(database)
