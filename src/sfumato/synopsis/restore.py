# SPDX-License-Identifier: Apache-2.0
"""Reads a synopsis from JSON (``document``), to answer more queries; post-processing."""

import base64
import json
from fractions import Fraction
from typing import Any

from sfumato.errors import SfumatoError, WrongUse, shown
from sfumato.metadata.dataset import Dataset
from sfumato.plan.cube import BoundedCube
from sfumato.privacy.distance import Norm
from sfumato.query.allowance import Allowance
from sfumato.query.marginals import marginal_cube
from sfumato.query.task import Stored
from sfumato.synopsis.chain import Chain
from sfumato.synopsis.column import Plan, Synopsis
from sfumato.synopsis.dense import DenseLayer, DenseStack
from sfumato.synopsis.document import FORMAT, KINDS, digest
from sfumato.synopsis.grid import Grid
from sfumato.synopsis.layers import Layer
from sfumato.synopsis.layout import Layout
from sfumato.synopsis.measurement import LayersTask
from sfumato.synopsis.stack import Stack
from sfumato.synopsis.strategy import Strategy
from sfumato.synopsis.tables import Tables, TablesPlan
from sfumato.synopsis.wanted import Kind, Term, Wanted
from sfumato.synopsis.workload import GivenKind


def from_json(text: str, dataset: Dataset) -> Synopsis | Tables:
    """Reads a synopsis from the JSON that its method ``to_json`` returned.

    Args:
        text: the JSON.
        dataset: the declarations under which it was measured; no data is read.

    Raises:
        WrongUse: not the JSON of a synopsis, or one of other declarations.

    >>> import sfumato as sf
    >>> people = sf.Table("people.csv", columns={"age": sf.Integer(0, 9)})
    >>> from_json("{}", Dataset("survey", {"people": people}))
    Traceback (most recent call last):
    ...
    sfumato.errors.WrongUse: That is not a synopsis of this version.
    Allowed: what to_json() wrote
    """
    try:
        facts = json.loads(text)
        return _restored(facts, dataset)
    except SfumatoError:
        raise
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError):
        raise WrongUse(
            "That is not a synopsis of this version.", allowed="what to_json() wrote"
        ) from None


def _restored(facts: dict[str, Any], dataset: Dataset) -> Synopsis | Tables:
    if facts["format"] != FORMAT:
        raise ValueError("another format")
    table, columns = str(facts["table"]), [str(name) for name in facts["columns"]]
    cube = marginal_cube(dataset, table, [columns])
    if facts["declared"] != digest(cube):
        raise WrongUse(
            f"A synopsis of {shown(table)} under other declarations.",
            allowed="the columns, the unit and the relation with which it was measured",
        )
    stored = Stored(base64.b64decode(facts["integers"]), str(facts["charge_id"]), recalled=True)
    wanted = Wanted(tuple(map(_term, facts["wanted"])))
    allowed = _allowance(facts["allowance"])
    synopsis: Synopsis | Tables
    if facts["kind"] == LayersTask.kind:
        synopsis = _column(facts, wanted, cube, allowed, dataset, stored)
    else:
        synopsis = _tables(facts, wanted, cube, allowed, dataset, stored)
    if len(stored.body) != synopsis.task.size:
        raise ValueError("integers are missing")
    return synopsis


def _column(
    facts: dict[str, Any],
    wanted: Wanted,
    cube: BoundedCube,
    allowed: Allowance,
    dataset: Dataset,
    stored: Stored,
) -> Synopsis:
    ((axis, kind),) = wanted.terms[0].factors
    strategy = _strategy(facts["strategy"], allowed.norm)
    plan = Plan(str(facts["table"]), axis, kind, cube, allowed, (strategy,))
    return Synopsis(plan, plan.task, dataset, stored)


def _tables(
    facts: dict[str, Any],
    wanted: Wanted,
    cube: BoundedCube,
    allowed: Allowance,
    dataset: Dataset,
    stored: Stored,
) -> Tables:
    layout = _layout(facts["strategy"], allowed.norm)
    plan = TablesPlan(str(facts["table"]), wanted, cube, allowed, (layout,))
    return Tables(plan, plan.task, dataset, stored)


def _allowance(facts: dict[str, Any]) -> Allowance:
    delta = None if facts["delta"] is None else Fraction(facts["delta"])
    return Allowance(Norm[facts["norm"]], Fraction(facts["amount"]), delta)


def _term(facts: dict[str, Any]) -> Term:
    factors = [(str(name), _kind(kind)) for name, kind in facts["factors"]]
    return Term(tuple(factors), Fraction(facts["weight"]))


def _kind(facts: Any) -> Kind:
    if isinstance(facts, str):
        return KINDS[facts]
    rows = []
    for row in facts:
        rows.append(tuple((float(value), int(times)) for value, times in row))
    return GivenKind(tuple(rows))


def _strategy(facts: dict[str, Any], norm: Norm) -> Strategy:
    return Strategy(facts["name"], _stack(facts), _shares(facts), norm, float(facts["factor"]))


def _stack(facts: dict[str, Any]) -> Stack | DenseStack:
    cells = int(facts["cells"])
    if "diagonal" in facts:
        layer = DenseLayer(base64.b64decode(facts["diagonal"]), base64.b64decode(facts["rows"]))
        return DenseStack(cells, layer)
    layers = tuple(Layer(int(width), halves=bool(halves)) for width, halves in facts["layers"])
    return Stack(cells, tuple(map(int, facts["widths"])), layers)


def _layout(facts: dict[str, Any], norm: Norm) -> Layout:
    chains = [Chain(int(cells), tuple(map(int, widths))) for cells, widths in facts["chains"]]
    layers = []
    for place in facts["layers"]:
        layers.append(tuple((int(axis), int(level)) for axis, level in place))
    grid = Grid(tuple(chains), tuple(layers))
    return Layout(facts["name"], grid, _shares(facts), norm, float(facts["factor"]))


def _shares(facts: dict[str, Any]) -> tuple[Fraction, ...]:
    return tuple(map(Fraction, facts["shares"]))
