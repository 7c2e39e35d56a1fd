# SPDX-License-Identifier: Apache-2.0
"""The datasets that a service has open: one ledger for each place, one session for each dataset."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import sfumato as sf
from sfumato.config.load import Declarations, open_declared, read_declarations
from sfumato.errors import InvalidConfig, shown
from sfumato.ledger.account_path import Scope
from sfumato.ledger.account_status import Standing
from sfumato.ledger.spend import Ledger
from sfumato.metadata.server import is_address
from sfumato.privacy.event import Json
from sfumato.query.session import Session

_ACTOR = "the service"


@dataclass(frozen=True, slots=True)
class Served:
    """An open dataset of the service: its ledger, and a session that asks in no account's name.

    ``session_of`` gives the session of an account.
    """

    name: str
    session: Session
    ledger: Ledger
    declared: Declarations
    # the file of the declarations
    path: Path

    def session_of(self, scope: Scope) -> Session:
        """Returns a session on the dataset whose questions are charged to this account."""
        return self.session.asking_as(scope.analyst, scope.purpose)

    def standing(self, scope: Scope) -> Standing:
        """Returns the budget status of an account: its limit, what is spent, and what is left."""
        return self.ledger.standing(scope.dataset, scope.purpose, scope.analyst)

    def accounts_of(self, person: str) -> list[Standing]:
        """Returns the status of a person's accounts in this dataset that have their own limit."""
        return [
            standing
            for standing in self.ledger.accounts()
            if standing.scope.dataset == self.name
            and standing.scope.analyst == person
            and standing.limit is not None
        ]

    def to_json(self) -> dict[str, Json]:
        """Returns the declared tables and columns as JSON, without the places of the data."""
        tables: list[Json] = []
        for name, table in self.session.dataset.tables.items():
            columns: list[Json] = [
                {"name": column, "declared": repr(kind)} for column, kind in table.columns.items()
            ]
            tables.append({"name": name, "size": table.size, "columns": columns})
        return {
            "dataset": self.name,
            "version": self.declared.dataset.version,
            "relation": self.declared.dataset.relation.value,
            "tables": tables,
            "runs": {name: list[Json](names) for name, names in self.declared.sections.items()},
        }


class Datasets:
    """The open datasets of a service; only accounts that the owner has opened may spend in them.

    Guarantees:
        a served dataset is closed
        datasets of one file share its ledger

    Raises:
        InvalidConfig: a file states ``closed = false``, or two state the same dataset.
        SfumatoError: as ``sf.load``.
    """

    def __init__(self, paths: Sequence[Path], lanes: int) -> None:
        self._open: dict[str, Served] = {}
        ledgers: dict[str, Ledger] = {}
        with ExitStack() as failed:
            for path in paths:
                declared = _read(path)
                name = declared.dataset.name
                if name in self._open:
                    raise InvalidConfig(f"Two files of the dataset {shown(name)}.")
                place = _place_of(declared)
                if place not in ledgers:
                    ledgers[place] = Ledger.open(declared.ledger, key=declared.ledger_key)
                    failed.callback(ledgers[place].close)
                ledger = ledgers[place]
                session = open_declared(declared, ledger=ledger, engine=sf.Local(lanes=lanes))
                failed.callback(session.close)
                if not ledger.is_closed(name):
                    ledger.acting_as(_ACTOR).restrict(name, closed=True, reason="it is served")
                self._open[name] = Served(name, session, ledger, declared, path)
            self._closing = failed.pop_all()
        self.ledgers = tuple(ledgers.values())

    def find(self, name: str) -> Served | None:
        """Returns the dataset with a name; None if the service does not serve it."""
        return self._open.get(name)

    def __iter__(self) -> Iterator[Served]:
        return iter(self._open.values())

    def close(self) -> None:
        """Closes the sessions of all datasets, then their ledgers."""
        self._closing.close()


def check(paths: Sequence[Path]) -> list[str]:
    """Parses a service's declaration files, without opening data; returns the dataset names.

    Raises:
        InvalidConfig: a file is wrong, or states ``closed = false``.
    """
    return [_read(path).dataset.name for path in paths]


def _read(path: Path) -> Declarations:
    declared = read_declarations(path)
    if declared.closed is False:
        raise InvalidConfig(
            f"{shown(path)}: [budget] closed = false.",
            allowed="true, or nothing: a service answers accounts that the owner opened",
        )
    return declared


def _place_of(declared: Declarations) -> str:
    """The place of a ledger in one spelling."""
    place = declared.ledger
    return str(place) if is_address(place) else str(Path(place).resolve())
