# SPDX-License-Identifier: Apache-2.0
"""Which errors of a server mean damage, and which only that nothing was charged."""

import psycopg
import pytest
from psycopg import errors

from sfumato.errors import LedgerBusy, LedgerCorrupt, LedgerReadOnly, LedgerUnavailable
from sfumato.ledger.store.postgres_errors import place_of, typed

# PostgreSQL 15 manual, appendix A: what says that tables, columns or rows are not what they were
# made as
DAMAGE = {"XX001", "XX002", "3F000", "42P01", "42703", "42883", "42804"}
INTEGRITY, DATA = "23", "22"
OTHERS = {"55P03": LedgerBusy, "25006": LedgerReadOnly, "42501": LedgerReadOnly}


def said(error: psycopg.Error) -> Exception:
    """The ledger's error for a server's."""
    with pytest.raises(Exception) as raised, typed("postgresql://h/d"):
        raise error
    return raised.value


def every_state() -> list[str]:
    """All SQLSTATEs that psycopg knows."""
    kinds = [
        kind
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, psycopg.Error)
    ]
    return sorted({kind.sqlstate for kind in kinds if kind.sqlstate})


def test_only_what_means_damage_is_called_damage() -> None:
    states = every_state()
    assert len(states) > 200
    for state in states:
        damaged = state in DAMAGE or state[:2] in (INTEGRITY, DATA)
        expected = LedgerCorrupt if damaged else OTHERS.get(state, LedgerUnavailable)
        assert type(said(errors.lookup(state)("secret"))) is expected, state


def test_an_error_without_a_state_is_no_damage() -> None:
    for kind in (psycopg.OperationalError, psycopg.InternalError, psycopg.errors.PipelineAborted):
        assert type(said(kind("secret"))) is LedgerUnavailable


def test_no_word_of_the_server_comes_out() -> None:
    for state in every_state():
        assert "secret" not in str(said(errors.lookup(state)("secret")))


def test_a_place_has_no_password() -> None:
    assert place_of("postgresql://u:hunter2@h:1/d") == "postgresql://h/d"
