# SPDX-License-Identifier: Apache-2.0
"""Opens a session from the declarations in a ``sfumato.toml`` (``sf.load``).

Commands that need the declarations alone call ``read_declarations``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sfumato.config.named_section import EXAMPLES, NO_FILE, require_table
from sfumato.config.open_places import require_filled
from sfumato.config.section import Key, flag, number, only, placed, read, table, text, texts
from sfumato.config.table import file_or_server, read_table
from sfumato.config.toml_file import read_toml
from sfumato.engines.files import is_same
from sfumato.engines.local import Local
from sfumato.errors import InvalidConfig, WrongUse, shown
from sfumato.ledger.account_path import UNSTATED
from sfumato.ledger.spend import Ledger
from sfumato.ledger.waiting import WAIT
from sfumato.metadata.dataset import Dataset
from sfumato.metadata.server import is_address
from sfumato.privacy.budget import Budget
from sfumato.privacy.unit import Relation
from sfumato.query.connect import OWNER, connect
from sfumato.query.session import Session

# What each section declares that a command reads by itself.
SECTIONS = {
    "census": "tables of counts down a geography: docs/census.md",
    "mining": "words, sets of items and sequences: docs/mining.md",
    "models": "models of private rows: docs/learning.md",
    "synopses": "one measurement that answers many questions: docs/synopsis.md",
    "synthetic": "synthetic rows: docs/synthetic.md",
    "telemetry": "tasks for devices: docs/collector.md",
}

# those that are measured once for a charge
RUN_BY_NAME = ("census", "mining", "models", "synopses", "synthetic")


def _path(value: Any) -> str:
    """Reads a path; refuses an address, which would become a file name with a password in it."""
    if is_address(text(value)):
        raise only("a path")
    return text(value)


def _relation(value: Any) -> Relation:
    """Reads a neighbour relation by its name."""
    try:
        return Relation(value)
    except ValueError:
        raise only(", ".join(relation.value for relation in Relation)) from None


def _version(value: object) -> str:
    """Reads a string or a whole number; a decimal without quotes would lose a trailing zero."""
    return str(value) if type(value) is int else text(value)


BUDGET = (
    Key("epsilon", number, '"1"', "the most that all answers may cost: sfumato explain-epsilon 1"),
    Key(
        "delta",
        number,
        '"1e-6"',
        "for Gaussian noise and open groups: far below 1 / number of persons",
        "0",
    ),
    Key("closed", flag, "true", "whether only accounts that the owner has opened may spend", None),
)
FILE = (
    Key("dataset", text, '"study-2026"', "its name in the ledger; it cannot change later"),
    Key("ledger", text, '"ledger.db"', "records what is spent; keep it, and back it up"),
    Key("version", _version, '"2"', "raise it when the content of the data changes", "1"),
    Key("relation", _relation, '"replace-one"', "what neighbours differ by", Relation.ADD_REMOVE),
    Key("analyst", text, '"ann"', "who asks, if nobody else is named", OWNER),
    Key("purpose", text, '"research"', "what for, if nothing else is named", UNSTATED),
    Key("prepared", _path, '"layouts"', "the folder of prepared layouts", None),
    Key("states", _path, '"states"', "the folder of what open streams and runs keep secret", None),
    Key("other_people", text, '"another year"', "why a dataset of this source is not the same", ""),
    Key("ledger_key", _path, '"heads.pem"', "the file of the key that signs heads", None),
    Key("ledger_heads", texts, '["file:///folder/name"]', "where heads are published", ()),
    Key("without_heads", text, '"the disk is lost"', "why heads that were are not compared", ""),
    Key("budget", table, '{epsilon = "1"}', "the limit of the dataset, on first use", None),
    Key("tables", table, '{people = {source = "people.csv"}}', "the tables by name", None),
    Key("streams", table, "{NAME = {}}", "counts that go on: docs/streams.md", {}),
    *(Key(name, table, "{NAME = {}}", what, None) for name, what in SECTIONS.items()),
)
_OF_A_SESSION = ("other_people", "without_heads", "analyst", "purpose")


def load(
    path: str | Path = "sfumato.toml",
    *,
    analyst: str | None = None,
    purpose: str | None = None,
    engine: Local | None = None,
    wait: float = WAIT,
    ledger: Ledger | None = None,
) -> Session:
    """Opens the session that a file declares; paths in it are relative to the file.

    ``analyst``, ``purpose``, ``engine`` and ``wait`` are those of ``connect``. If ``analyst`` or
    ``purpose`` is None, that of the file is used, or else the default of ``connect``. ``ledger`` is
    the ledger of the file, if it is open already: it stays open when the session is closed, so
    the sessions of several datasets share it.

    Raises:
        InvalidConfig: there is no such file, it is not TOML, or a key is missing, unknown or wrong.
        WrongUse: ``ledger`` is another ledger than the file's.
        SfumatoError: as ``connect``.

    >>> load("nowhere.toml")
    Traceback (most recent call last):
    ...
    sfumato.errors.InvalidConfig: No file 'nowhere.toml'.
    What to do: Write a sfumato.toml, or name another with -c.
    """
    declared = read_declarations(path)
    return open_declared(
        declared, analyst=analyst, purpose=purpose, engine=engine, wait=wait, ledger=ledger
    )


def open_declared(
    declared: "Declarations",
    *,
    analyst: str | None = None,
    purpose: str | None = None,
    engine: Local | None = None,
    wait: float = WAIT,
    ledger: Ledger | None = None,
) -> Session:
    """Returns the session of declarations already read from a file; arguments as for ``load``.

    Raises:
        WrongUse: ``ledger`` is another ledger than the declared one.
        SfumatoError: as ``connect``.
    """
    states, ledger_key = declared.states, declared.ledger_key
    if ledger is not None:
        _require_declared(ledger, declared.ledger)
        # an open ledger has its key, and implies no folder
        ledger_key = None
        if states is None and not is_address(declared.ledger):
            states = Path(f"{declared.ledger}.streams")
    return connect(
        declared.dataset.tables,
        dataset=declared.dataset.name,
        ledger=declared.ledger if ledger is None else ledger,
        budget=declared.budget,
        relation=declared.dataset.relation,
        version=declared.dataset.version,
        analyst=declared.analyst if analyst is None else analyst,
        purpose=declared.purpose if purpose is None else purpose,
        prepared=declared.prepared,
        states=states,
        engine=engine,
        closed=declared.closed,
        other_people=declared.other_people,
        ledger_key=ledger_key,
        ledger_heads=declared.ledger_heads,
        without_heads=declared.without_heads,
        wait=wait,
    )


def _require_declared(ledger: Ledger, place: str | Path) -> None:
    """Refuses an open ledger in another file than the declared one: its budget would be fresh.

    An address has several spellings, so ledgers on servers are not compared.
    """
    if not isinstance(ledger, Ledger):
        raise WrongUse(f"ledger={shown(ledger)}.", allowed="sfumato.ledger.Ledger.open(place)")
    if not is_address(place) and not is_same(Path(ledger.store.place), Path(place)):
        raise WrongUse(
            f"The file declares the ledger {shown(place)}, and another is open.",
            remedy="Open the declared one.",
        )


@dataclass(frozen=True, slots=True)
class Declarations:
    """The declarations of a file: the dataset, the ledger, and the options of ``connect``.

    ``streams`` has the TOML table of each ``[streams.name]``, unparsed.
    """

    dataset: Dataset
    # an address may have a password
    ledger: str | Path = field(repr=False)
    budget: Budget | None
    prepared: Path | None = None
    closed: bool | None = None
    other_people: str = ""
    ledger_heads: tuple[str, ...] = field(default=(), repr=False)
    without_heads: str = ""
    ledger_key: Path | None = None
    states: Path | None = None
    streams: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    # the names in each section that is run by name, as [models.NAME]
    sections: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    analyst: str = OWNER
    purpose: str = UNSTATED


def read_declarations(path: str | Path) -> Declarations:
    """Returns the declarations of a file; opens neither the data nor the ledger.

    Raises:
        InvalidConfig: there is no such file, it is not TOML, a value is not filled in yet, or a key
            is missing, unknown or wrong.
    """
    form = read_toml(path, NO_FILE)
    folder = Path(path).parent
    require_filled(form)
    stated = read(form, "the file", FILE)
    # a dataset may have telemetry and no table
    if stated["tables"] is None and stated["telemetry"] is None:
        raise InvalidConfig("The file has no [tables].", remedy=EXAMPLES)
    tables = {}
    for name, declared in (stated["tables"] or {}).items():
        tables[name] = read_table(declared, f"tables.{name}", folder)
    paths: dict[str, Any] = {}
    for key in ("prepared", "states", "ledger_key"):
        paths[key] = None if stated[key] is None else folder / stated[key]
    budget, closed = _budget(stated["budget"])
    return Declarations(
        Dataset(stated["dataset"], tables, stated["relation"], stated["version"]),
        file_or_server(stated["ledger"], folder),
        budget,
        closed=closed,
        streams={
            name: require_table(form, f"streams.{name}") for name, form in stated["streams"].items()
        },
        sections={name: tuple(stated[name]) for name in RUN_BY_NAME if stated[name]},
        **paths,
        ledger_heads=tuple(stated["ledger_heads"]),
        **{name: stated[name] for name in _OF_A_SESSION},
    )


def _budget(form: object) -> tuple[Budget | None, bool | None]:
    """The limit of a dataset, and whether only opened accounts may spend; None if not stated."""
    if form is None:
        return None, None
    stated = read(form, "budget", BUDGET)
    with placed("budget"):
        return Budget(stated["epsilon"], stated["delta"]), stated["closed"]


def default_key(declared: Declarations) -> Path:
    """Returns the path of the declared signing key; by default it is beside the ledger file.

    Raises:
        WrongUse: the ledger is on a server, and no key is declared.
    """
    if declared.ledger_key is not None:
        return declared.ledger_key
    if is_address(declared.ledger):
        raise WrongUse(
            "A ledger on a server has no folder for a key.",
            remedy="Name the file with --key, or ledger_key in the file.",
        )
    return Path(f"{declared.ledger}.key")
