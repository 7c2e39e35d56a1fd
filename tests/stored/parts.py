# SPDX-License-Identifier: Apache-2.0
"""What is stored beside the forms of questions: each text, with what makes it, by its name.

The kind of a text is the first word of its name. ``OWN`` says which names of Python each kind of
text has in it, besides those of forms.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from fractions import Fraction
from functools import partial
from inspect import isabstract
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, get_args, get_type_hints

from sfumato import errors, synopsis
from sfumato import learning as ln
from sfumato.audit.catalogue import catalogue
from sfumato.engines.prepared import declaration
from sfumato.errors import Refused, SfumatoError, WrongUse
from sfumato.graph.questions import Degrees, Edges, Shape, Triangles
from sfumato.graph.task import graph_task
from sfumato.learning.features import Bagged, Binned, Line, Listed
from sfumato.learning.torch.fingerprint import parts_by_name
from sfumato.learning.torch.reading import Input, Reading, TextReading
from sfumato.ledger.answers import Answers
from sfumato.ledger.journal import Entry, canonical_json
from sfumato.ledger.pieces import Pieces
from sfumato.ledger.pins import Known, Pin
from sfumato.ledger.store import base, rows
from sfumato.ledger.tally import Tally, entry_body
from sfumato.metadata.column import Array, Category, Column, Integer, Text
from sfumato.metadata.dataset import Dataset
from sfumato.metadata.table import Table
from sfumato.metadata.timestamp import Timestamp
from sfumato.metadata.tokens import Tokens
from sfumato.mining import Itemsets, Means, Paths, Recipe, Terms
from sfumato.mining.recipe import Asked, MiningTask
from sfumato.noise import (
    Binomial,
    DiscreteGaussian,
    DiscreteLaplace,
    DiscreteStaircase,
    Geometric,
    RoundedGaussian,
    Skellam,
    Truncated,
)
from sfumato.plan.owner import Owner
from sfumato.plan.relation import Scan, Sort, Summary, Windowed, WindowFunction
from sfumato.plan.rows import BoundedRows, RowList
from sfumato.plan.scalar import (
    Arithmetic,
    ChangeCase,
    Compare,
    Comparison,
    Constant,
    DatePart,
    Field,
    Operation,
    Part,
    Substring,
    Trim,
)
from sfumato.plan.show import form
from sfumato.plan.statistic import Statistic
from sfumato.plan.units_where import CountUnitsWhere
from sfumato.plan.value import Value
from sfumato.privacy.distance import Distance, Norm
from sfumato.privacy.event import Event, event_from_json, event_to_json
from sfumato.privacy.event.sampling_designs import Design
from sfumato.privacy.unit import AddRemove, Edge, Node, Relation, Unit
from sfumato.query.allowance import Allowance
from sfumato.synthetic.measured_as import measured_as
from sfumato.synthetic.schema import schema_of
from sfumato.telemetry.oracles.form import KINDS
from sfumato.telemetry.task import ReportTask, task_from_bytes
from tests.stored.asking import Maker
from tests.stored.questions import FOLDER, MODELS, OPTIMIZERS, ROOM, SHOP

# The recipes that a TOML file names; settings of scikit-learn are their fields.
RECIPES = [
    kind
    for kind in (getattr(ln, name) for name in sorted(ln.__all__))
    if isinstance(kind, type) and issubclass(kind, ln.Recipe) and not isabstract(kind)
]
# The rows of a ledger, by the table that stores them.
ROWS: Mapping[str, Any] = {
    "account": base.AccountRow,
    "charge": base.ChargeRow,
    "answer": base.AnswerRow,
    "instalment": base.InstalmentRow,
    "key": base.KeyRow,
    "part": base.PartRow,
    "journal": Entry,
}


# What no pinned question has in its form, and others may have.
def _of_unicode(tokens: Tokens, version: str) -> Tokens:
    """A rule as a Python with this version of Unicode makes it."""
    object.__setattr__(tokens, "unicode", version)
    return tokens


def _mined(recipe: Recipe, cost: Mapping[str, Any], *more: Column) -> MiningTask:
    """The task of a recipe for some columns of a table."""
    note = Column("note", Text(tokens=_of_unicode(Tokens(), "14.0.0")))
    columns = note, Column("day", Integer(0, 9)), *more
    rows = RowList(Scan("notes", columns=columns), tuple(map(Value.of, columns)))
    plan = BoundedRows(rows, "who", 2, AddRemove)
    return recipe.planned(plan, Asked(cost.get("epsilon"), cost.get("rho"), cost.get("delta")))


_DELTA = {"rho": 1, "delta": "1e-6"}
_SCAN = Column("scan", Array(2, 0, 9))
_NOTE, _DAY = Column("note", Text()), Column("day", Integer(0, 9))
_WINDOWS: Scan | Windowed = Scan("notes", columns=(_NOTE, _DAY))
for _place, _function in enumerate(WindowFunction):
    _looked_up = _function in (WindowFunction.LAG, WindowFunction.LEAD)
    _WINDOWS = Windowed(
        _WINDOWS,
        _function,
        (Field(_NOTE),),
        (Sort(Field(_DAY)),),
        (Field(_NOTE), Field(_DAY)),
        Column(f"w{_place}", Integer(0, 9)),
        Value.of(_DAY) if _looked_up else None,
        2 if _looked_up else 1,
    )
TIES = Dataset(
    "ties",
    {
        "people": Table("people.csv", unit=Unit("id", name="person")),
        "ties": Table("ties.csv", Edge("a", "b"), {"kind": Category("x", "y")}),
        "friends": Table("friends.csv", Node("a", "b", of="people")),
    },
)
NODES: Mapping[str, Any] = {
    "laplace": DiscreteLaplace(Fraction(5, 2)),
    "gaussian": DiscreteGaussian(sigma_squared=Fraction(7, 3)),
    "staircase": DiscreteStaircase(Fraction(1, 2), 4, 2),
    "binomial": Binomial(100, Fraction(1, 2)),
    "skellam": Skellam(Fraction(9, 2)),
    "rounded": RoundedGaussian(Fraction(3, 2)),
    "geometric": Geometric(Fraction(5, 2)),
    "truncated": Truncated(DiscreteLaplace(2), -9, 9),
    "distances": [Distance(norm, Fraction(1), relation) for norm in Norm for relation in Relation],
    "comparisons": [Compare(each, Constant(1), Constant(2)) for each in Comparison],
    "operations": [Arithmetic(each, Constant(1), Constant(2)) for each in Operation],
    "parts": [DatePart(each, Constant(1)) for each in Part],
    "statistics": list(Statistic),
    "summaries": list(Summary),
    "timestamp": Column("at", Timestamp("2024-01-01", "2024-12-31", format="%d/%m/%Y %H:%M")),
    "units of a condition": CountUnitsWhere(Value.of(Column("age", Integer(0, 9)))),
    "terms": _mined(Terms("note", by="day", grams=2), _DELTA),
    "declared terms": _mined(Terms("note", only=["eye"]), {"epsilon": 1}),
    "paths": _mined(Paths("note", order="day"), _DELTA),
    "itemsets": _mined(Itemsets(), _DELTA),
    "means": _mined(Means("scan", by="day"), {"rho": 1}, _SCAN),
    "means by term": _mined(Means("scan", by="note", only=["eye"], length=5), {"rho": 1}, _SCAN),
    "terms by picture": _mined(
        Terms("note", by="scan", prototypes=[[1, 2], [3, 4]]), _DELTA, _SCAN
    ),
    "bag of a text": Bagged("note", ln.Bag(64, 4)),
    "reading of texts": TextReading(
        (Input(0, 0, 64, is_class=True),), Input(1, 0, 1, is_class=True), ln.Bag(64, 4)
    ),
    "windows": _WINDOWS,
    "functions of a text": Substring(ChangeCase(Field(_NOTE), upper=True), 2, 3),
    "text without spaces": Trim(Field(_NOTE), end=False),
    "pair": Scan("ties", owner=Owner(("a", "b"), unordered=True)),
    "graph of edges": graph_task(
        TIES, "ties", Degrees(), Allowance(Norm.L1, Fraction(1, 2)), "kind = 'x'"
    ),
    "graph of nodes": graph_task(
        TIES, "friends", Edges(max_degree=9), Allowance(Norm.L2, Fraction(1, 2))
    ),
    "graph of nodes, degrees": graph_task(
        TIES, "friends", Degrees(), Allowance(Norm.L2, Fraction(1, 2))
    ),
    "triangles": graph_task(TIES, "ties", Triangles(), Allowance(Norm.L1, Fraction(1, 2))),
    "synthetic graph": graph_task(TIES, "ties", Shape(), Allowance(Norm.L1, Fraction(1, 2))),
    "tokens": Column("note", Text(tokens=_of_unicode(Tokens(["the"], ["眼睛"], 90, 9), "14.0.0"))),
}


def makers() -> Iterator[tuple[str, Maker]]:
    """Each stored text by its name."""
    for name, node in NODES.items():
        yield f"form of {name}", partial(form, node)
    for name, text in read("events.json").items():
        yield f"event {name}", partial(event_text, event_from_json(json.loads(text)))
    for name, text in read("telemetry.json").items():
        yield f"telemetry {name}", partial(_task, task_from_bytes(text.encode()))
    for path in sorted(MODELS.glob("*.json")):
        yield f"model {path.stem}", partial(saved, loaded(path))
    for name, optimizer in OPTIMIZERS.items():
        yield f"fingerprint {name}", partial(_parts, optimizer)
    yield "fingerprint reading", partial(_parts, READING)
    yield "measured columns", _measured
    yield "layout", _layout
    yield "pieces", PIECES.to_text
    yield "pin", _pin
    yield "refusals", _refusals
    yield "recipes", _recipes
    yield "mechanisms", _mechanisms
    yield "rows", _rows


def pinned() -> dict[str, str]:
    """What each of ``makers`` makes, as it is stored."""
    texts = {f"event {name}": text for name, text in read("events.json").items()}
    texts |= {f"telemetry {name}": text for name, text in read("telemetry.json").items()}
    for path in MODELS.glob("*.json"):
        texts[f"model {path.stem}"] = path.read_text(encoding="utf-8")
    return texts | read("parts.json")


def read(name: str) -> dict[str, Any]:
    """A pinned file of JSON."""
    made: dict[str, Any] = json.loads((FOLDER / name).read_text(encoding="utf-8"))
    return made


def loaded(path: Path) -> Any:
    """A stored model or synopsis."""
    if path.stem.startswith("synopsis"):
        return synopsis.from_json(path.read_text(encoding="utf-8"), Dataset("room", ROOM))
    return ln.load(path)


def saved(model: Any) -> str:
    """The text of a model's file."""
    if hasattr(model, "to_json"):
        return str(model.to_json())
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        model.save(path)
        return path.read_text(encoding="utf-8")


READING = Reading(
    (Input(0, 0, 9, is_class=False), Input(1, 0, 1, is_class=True)), Input(2, 0, 1, is_class=True)
)
PIECES = Pieces(places=10).with_begun(3).with_appended(2)
PIN = Pin("a ledger", "00" * 32, "a digest")


def event_text(event: Event) -> str:
    """The JSON of an event."""
    return json.dumps(event_to_json(event), sort_keys=True)


def _task(task: ReportTask) -> str:
    return task.to_bytes().decode()


def _parts(value: object) -> str:
    return json.dumps(parts_by_name(value=value), sort_keys=True)


def _measured() -> str:
    """What a fit states of the columns that it measured."""
    columns = [name for name in ROOM["t"].columns if name not in ("job", "v")]
    schema = schema_of(Dataset("room", ROOM), "t", columns, {}, {})
    return json.dumps(measured_as(schema), sort_keys=True)


def _layout() -> str:
    """What a prepared layout states of the declaration that it was made for."""
    return json.dumps(declaration(Dataset("shop", SHOP), "notes"), sort_keys=True)


def _pin() -> str:
    """The file of the ledgers that were verified."""
    with TemporaryDirectory() as folder:
        known = Known(Path(folder) / "known.json")
        known.keep("a place", PIN)
        return known.path.read_text(encoding="utf-8")


def _refusals() -> str:
    """The entry of a journal that counts a refusal of every kind."""
    answers = object.__new__(Answers)
    answers._tally = tally = Tally()
    request: Any = type("Request", (), {"scope": type("Scope", (), {"root": "d", "id": "d"})})
    for kind in REFUSALS:
        try:
            with answers._counted(request):
                raise kind.__new__(kind)
        except kind:
            pass
    return canonical_json(entry_body(tally.take("d")))


def _recipes() -> str:
    """The recipes of a TOML file and of scikit-learn, with their settings."""
    settings = {kind.__name__: names(kind) for kind in RECIPES}
    return json.dumps(settings, sort_keys=True)


def _mechanisms() -> str:
    """The mechanisms that the JSON of an audit names."""
    return json.dumps(sorted({type(each.mechanism).__name__ for each in catalogue()}))


def _rows() -> str:
    """The columns of each kind of row of a ledger."""
    return json.dumps({table: rows._columns(kind) for table, kind in ROWS.items()})


def names(kind: Any) -> list[str]:
    """The fields of a class."""
    if not is_dataclass(kind):
        return list(kind._fields)
    return [field.name for field in fields(kind)]


def stored_fields(kind: Any) -> list[str]:
    """The fields of a class that are stored by their names: a distance of an event has others."""
    hints = get_type_hints(kind)
    return [name for name in names(kind) if hints[name] is not Distance]


def _below(kind: type[SfumatoError]) -> Iterator[type[SfumatoError]]:
    """A class and those that derive from it."""
    yield kind
    for each in kind.__subclasses__():
        if each.__module__ == errors.__name__:
            yield from _below(each)


REFUSALS = sorted({*_below(Refused), *_below(WrongUse)}, key=lambda kind: kind.__name__)
# By the first word of a text: the classes whose own names are in it, and those whose fields are.
OWN: Mapping[str, tuple[list[Any], list[Any]]] = {
    "event": ([], [*get_args(Event), *get_args(Design)]),
    "telemetry": ([], [ReportTask, *KINDS.values()]),
    "model": ([Binned, Line, Listed], [Binned, Line, Listed]),
    "fingerprint": (
        [*map(type, OPTIMIZERS.values()), Reading, Input],
        [*map(type, OPTIMIZERS.values()), Reading, Input],
    ),
    "pieces": ([], [Pieces]),
    "pin": ([], [Pin]),
    "refusals": (REFUSALS, []),
    "recipes": (RECIPES, RECIPES),
    "mechanisms": ([*{type(each.mechanism) for each in catalogue()}], []),
    "rows": ([], [*ROWS.values()]),
}
# By the first word of a text: the members of enums that are in it by their own names.
BY_NAME: Mapping[str, tuple[Any, ...]] = {"model": (Norm.L1, Norm.L2)}
