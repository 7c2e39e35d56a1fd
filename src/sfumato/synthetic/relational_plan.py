# SPDX-License-Identifier: Apache-2.0
"""Plans a fit of several tables from declarations alone: columns, shares of the cost, rounds."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato.errors import UnknownName, shown
from sfumato.exact.rational import Number
from sfumato.metadata.dataset import Dataset
from sfumato.privacy.distance import Norm
from sfumato.query.allowance import Allowance
from sfumato.query.explain import protection
from sfumato.synthetic.constraints import Constraint, rules_of
from sfumato.synthetic.relational import Family, family_of, rows_of
from sfumato.synthetic.relational_task import ChildTask, RelationalTask
from sfumato.synthetic.rules import Rule
from sfumato.synthetic.schedule import Schedule
from sfumato.synthetic.schema import Schema
from sfumato.synthetic.task import FitTask
from sfumato.synthetic.tree import Clique
from sfumato.synthetic.unit_table import UnitTable
from sfumato.synthetic.workload import weights_of

# How many marginals are chosen for each column of a child; and if little is spent.
_ROUNDS, _FEW_ROUNDS = 3, 1


def planned(
    dataset: Dataset,
    family: Family,
    allowed: Allowance,
    constraints: Sequence[Constraint],
    workload: Mapping[str, int],
    *,
    rounds: int | None = None,
    check: Number = "0.05",
) -> RelationalTask:
    """The task of a fit. Each table has a share of the cost in proportion to its columns.

    Raises:
        UnknownName, WrongUse: as ``fit``.
    """
    size = dataset.tables[family.parent].size
    columns = [len(family.widened(0)), *(len(child.axes) for child in family.children)]
    schedules = []
    parts = allowed.shares(*columns)
    for place, (number, share) in enumerate(zip(columns, parts, strict=True)):
        part = replace(allowed, amount=share)
        found = Schedule.of(number, part, size=size, rounds=rounds, check=check)
        schedules.append(_of_child(family, place, found, rounds) if place else found)
    return built(dataset, family, schedules, constraints, workload)


def _of_child(
    family: Family,
    table: int,
    schedule: Schedule,
    rounds: int | None,
) -> Schedule:
    """The schedule of a child: its columns can also go with those of the parent."""
    own, wide = schedule.columns, len(family.widened(table))
    possible = own * (own - 1) // 2 + own * (wide - own)
    each = _ROUNDS if schedule.faint > 1 else _FEW_ROUNDS
    taken = each * own if rounds is None else rounds
    return replace(schedule, rounds=min(taken, possible))


def built(
    dataset: Dataset,
    family: Family,
    schedules: Sequence[Schedule],
    constraints: Sequence[Constraint],
    workload: Mapping[str, int],
) -> RelationalTask:
    """The task, and the arguments from which ``remade`` makes it again."""
    rows = rows_of(dataset, family)
    plans = [UnitTable(family, rows, place) for place in range(len(family.tables))]
    weights = _weights(family, workload)
    schema = Schema(family.parent, family.widened(0), plans[0])
    rules = (*rules_of(schema, constraints), *_nested(family))
    parent = FitTask(schema, schedules[0], "{}", rules, weights[0])
    children = []
    for place in range(1, len(plans)):
        child = ChildTask(plans[place], schedules[place], weights[place])
        if len(child.countable) < child.schedule.checks:
            unchecked = replace(child.schedule, check=Fraction(0))
            child = replace(child, schedule=unchecked)
        children.append(child)
    asked = {
        **_asked(dataset, family),
        "schedules": [_told(each) for each in schedules],
        "constraints": [each.test for each in constraints],
        "workload": dict(workload),
        "protected": " ".join(protection(dataset, rows.unit)),
    }
    return RelationalTask(parent, tuple(children), rows, json.dumps(asked, sort_keys=True))


def remade(
    dataset: Dataset,
    asked: Mapping[str, Any],
) -> RelationalTask:
    """The task of stored arguments (WrongUse if the declarations are others)."""
    columns = []
    for name, own in asked["columns"].items():
        columns += [f"{name}.{column}" for column in own]
    family = family_of(dataset, asked["tables"], columns, order=asked["order"])
    starts = asked["starts"]
    axes = []
    for name, own in zip(family.tables, family.own, strict=True):
        found = []
        for one in own:
            cut = starts.get(f"{name}.{one.name}")
            found.append(replace(one, starts=None if cut is None else tuple(cut)))
        axes.append(tuple(found))
    children = []
    for child, own in zip(family.children, axes[1:], strict=True):
        children.append(replace(child, axes=own))
    family = replace(family, axes=axes[0], children=tuple(children))
    constraints = [Constraint(test) for test in asked["constraints"]]
    schedules = [_schedule(told) for told in asked["schedules"]]
    return built(dataset, family, schedules, constraints, asked["workload"])


def _nested(family: Family) -> list[Rule]:
    """A unit without rows in a table has none in those whose rows belong to rows of it."""
    rules = []
    names = [child.table for child in family.children]
    for place, child in enumerate(family.children):
        if child.above:
            above = names.index(child.above)
            allowed = np.ones((family.children[above].most + 2, child.most + 2), bool)
            # no row above, and missing numbers, which do not occur
            allowed[0, 1:] = allowed[-1] = allowed[:, -1] = False
            columns = len(family.axes)
            rules.append(Rule((columns + above, columns + place), allowed))
    return rules


def _weights(
    family: Family,
    workload: Mapping[str, int],
) -> list[tuple[tuple[Clique, int], ...]]:
    """For each table, the weights of the pairs that the workload names columns of."""
    found, known = [], []
    for place, (table, own) in enumerate(zip(family.tables, family.own, strict=True)):
        others = [one.name for one in family.widened(place)[len(own) :]]
        names = [*(f"{table}.{one.name}" for one in own), *others]
        known += names
        found.append(
            weights_of(names, {name: workload[name] for name in names if name in workload})
        )
    unknown = [name for name in workload if name not in known]
    if unknown:
        raise UnknownName(f"No column {shown(unknown[0])}.", allowed=", ".join(known))
    return found


def _asked(
    dataset: Dataset,
    family: Family,
) -> dict[str, Any]:
    """The tables, with their columns, bins and orders."""
    columns, starts, left_out = {}, {}, {}
    for name, axes in zip(family.tables, family.own, strict=True):
        columns[name] = [one.name for one in axes]
        for one in axes:
            if one.starts is not None:
                starts[f"{name}.{one.name}"] = list(one.starts)
        declared = dataset.tables[name].columns
        left_out[name] = [column for column in declared if column not in columns[name]]
    return {
        "tables": list(family.tables),
        "columns": columns,
        "starts": starts,
        "left_out": left_out,
        "order": {child.table: child.order for child in family.children},
    }


def _told(schedule: Schedule) -> dict[str, Any]:
    """A schedule for JSON."""
    allowed = schedule.allowance
    return {
        "norm": allowed.norm.name,
        "amount": str(allowed.amount),
        "delta": None if allowed.delta is None else str(allowed.delta),
        "columns": schedule.columns,
        "rounds": schedule.rounds,
        "limit": schedule.limit,
        "faint": schedule.faint,
        "check": str(schedule.check),
    }


def _schedule(
    told: Mapping[str, Any],
) -> Schedule:
    """A schedule from JSON."""
    delta = None if told["delta"] is None else Fraction(told["delta"])
    allowed = Allowance(Norm[told["norm"]], Fraction(told["amount"]), delta)
    sizes = told["columns"], told["rounds"], told["limit"], told["faint"]
    return Schedule(allowed, *sizes, Fraction(told["check"]))
