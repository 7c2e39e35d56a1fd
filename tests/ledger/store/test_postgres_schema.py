# SPDX-License-Identifier: Apache-2.0
"""The tables in PostgreSQL: their guards, their collation, and who may make them."""

from pathlib import Path

import apsw
import psycopg
import pytest

from sfumato.ledger.spend import Ledger
from sfumato.ledger.store import postgres_schema
from sfumato.ledger.store.postgres import Postgres
from sfumato.ledger.store.postgres_schema import GUARDS, SCHEMA, create_tables, has_tables
from sfumato.ledger.verify import verify
from tests.contracts.charges import paid, pure
from tests.contracts.postgres import Cluster

DATA = Path(__file__).parent.parent / "data"


@pytest.fixture
def made(database: str) -> str:
    """A database with the tables."""
    with psycopg.connect(database, cursor_factory=psycopg.RawCursor) as connection:
        assert not has_tables(connection)
        create_tables(connection)
        assert has_tables(connection)
    return database


def test_tables_that_are_there_are_left_alone(made: str) -> None:
    with psycopg.connect(made, cursor_factory=psycopg.RawCursor) as connection:
        before = connection.execute("SELECT * FROM sfumato.meta").fetchall()
        create_tables(connection)
        assert connection.execute("SELECT * FROM sfumato.meta").fetchall() == before


@pytest.mark.parametrize("number", [2, 3, 4])
def test_a_ledger_of_an_older_format_comes_forward_with_all_that_it_holds(
    database: str, number: int
) -> None:
    write_old(database, number)
    for _ in range(2):
        ledger = Ledger.open(database)
        assert verify(ledger).problems == ()
        assert ledger.answer("one") == b"first answer"
        ledger.close()
    ledger = Ledger.open(database)
    paid(ledger, pure("0.1", "new"), b"new", released=("fresh",))
    assert ledger.released(["fresh"], "d/unstated/owner") == {"fresh": [b"new"]}
    assert verify(ledger).problems == ()
    ledger.close()


def write_old(database: str, number: int) -> None:
    """The rows of a file of an older format, in tables of that format."""
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    file = apsw.Connection(f"file:{DATA}/format-{number}.sqlite?immutable=1", flags=flags)
    with psycopg.connect(database, cursor_factory=psycopg.RawCursor) as connection:
        connection.execute(f"CREATE SCHEMA {SCHEMA}; SET search_path = {SCHEMA}")
        connection.execute(postgres_schema._TABLES + (postgres_schema._PARTS if number > 2 else ""))
        if number > 3:
            postgres_schema._from_3(connection)
        connection.execute("INSERT INTO meta VALUES ('version', $1)", (str(number),))
        for table in (
            "meta",
            "journal",
            "account",
            "charge",
            "answer",
            "key",
            *(("part",) if number > 2 else ()),
        ):
            cursor = file.execute(f"SELECT * FROM {table} ORDER BY rowid")
            for row in cursor:
                names = ", ".join(f'"{each[0]}"' for each in cursor.get_description())
                places = ", ".join(f"${place}" for place in range(1, len(row) + 1))
                connection.execute(f"INSERT INTO {table} ({names}) VALUES ({places})", row)
    file.close()


def test_every_text_compares_by_its_bytes(made: str) -> None:
    others = (
        "SELECT attname FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid "
        "WHERE relnamespace = $1::regnamespace AND atttypid = 'text'::regtype AND attcollation <> '\"C\"'::regcollation"
    )
    with psycopg.connect(made, cursor_factory=psycopg.RawCursor) as connection:
        assert connection.execute(others, (SCHEMA,)).fetchall() == []


@pytest.mark.parametrize(
    ("guard", "twice"),
    [
        ("account_id", "INSERT INTO account SELECT * FROM account"),
        ("charge_id", "INSERT INTO charge SELECT * FROM charge"),
        ("journal_seq", "INSERT INTO journal SELECT * FROM journal"),
        ("key_key", "INSERT INTO key SELECT * FROM key"),
        (
            "key_seq",
            "INSERT INTO key SELECT account, 'other', request, charge, chain, seq FROM key",
        ),
        (
            "answer_question",
            "INSERT INTO answer SELECT 9, question, '', '', 'c2', '', 0 FROM answer",
        ),
        (
            "answer_charge",
            "INSERT INTO answer SELECT 9, 'other', '', '', charge, '', 0 FROM answer",
        ),
        (
            "answer_paid",
            "INSERT INTO answer SELECT 9, 'other', '', '', 'nobody', '', 0 FROM answer",
        ),
        ("charge_state", "UPDATE charge SET state = 'refunded'"),
        ("charge_question", "UPDATE charge SET question = 'q', state = 'executing'"),
        ("charge_seq", "UPDATE charge SET seq = 1"),
        (
            "instalment_place",
            "INSERT INTO instalment SELECT charge, 1, '', 'd', 9, '' FROM instalment",
        ),
        (
            "instalment_seq",
            "INSERT INTO instalment SELECT charge, 2, '', 'd', 5, '' FROM instalment",
        ),
        (
            "instalment_paid",
            "INSERT INTO instalment SELECT 'nobody', 2, '', 'd', 9, '' FROM instalment",
        ),
        ("chunk_number", "INSERT INTO chunk SELECT * FROM chunk"),
        ("part_key", "INSERT INTO part SELECT * FROM part"),
        ("part_paid", "INSERT INTO part SELECT part, 'nobody', chain, 2 FROM part"),
    ],
)
def test_every_guard_holds(made: str, guard: str, twice: str) -> None:
    assert guard in GUARDS
    with psycopg.connect(made, cursor_factory=psycopg.RawCursor) as connection:
        connection.execute(f"SET search_path = {SCHEMA}")
        connection.execute(
            "INSERT INTO account SELECT 'd', '', '', '', '', '', '', '', '', '', 0, '', 0"
        )
        connection.execute("INSERT INTO journal SELECT 'd', 1, '', '', '', '', ''")
        for number in (1, 2):
            charge = f"'c{number}', 'd', {number}, 'd', 'd', '', 'reserved', 'q{number}'"
            connection.execute(f"INSERT INTO charge SELECT {charge}, '', '', '', '', '', 0, 0")
        connection.execute("INSERT INTO key SELECT 'd', 'k', '', 'c1', 'd', 1")
        connection.execute(
            "INSERT INTO answer OVERRIDING SYSTEM VALUE SELECT 1, 'q', '', '', 'c1', '', 0"
        )
        connection.execute("INSERT INTO part SELECT 'p', 'c1', 'd', 1")
        connection.execute("INSERT INTO instalment SELECT 'c1', 1, '', 'd', 5, ''")
        connection.execute("INSERT INTO chunk SELECT 'n', 0, ''")
        with pytest.raises(psycopg.IntegrityError) as refused:
            connection.execute(
                twice.replace("answer SELECT", "answer OVERRIDING SYSTEM VALUE SELECT")
            )
        assert refused.value.diag.constraint_name == guard


def test_a_role_that_may_make_no_schema_uses_one_that_was_made_for_it(
    postgres: Cluster, database: str
) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS tenant")
        connection.execute("CREATE ROLE tenant LOGIN")
        connection.execute(f"CREATE SCHEMA {SCHEMA} AUTHORIZATION tenant")
    store = Postgres(database.replace("sfumato@", "tenant@"))
    assert store.damage() == []
    store.close()
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("DROP OWNED BY tenant CASCADE")
        connection.execute("DROP ROLE tenant")
