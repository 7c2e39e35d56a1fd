# SPDX-License-Identifier: Apache-2.0
"""Plans a fit of several tables from declarations: columns, shares of the cost, rounds.

It also stores the plan as JSON (``built``) and builds it again (``remade``) for ``load``.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato.errors import UnknownName, shown
from sfumato.exact.rational import Number
from sfumato.metadata.dataset import Dataset
from sfumato.plan.rows import BoundedRows
from sfumato.privacy.distance import Norm
from sfumato.query.allowance import Allowance
from sfumato.query.explain import protection
from sfumato.synthetic.constraints import Constraint, rules_of
from sfumato.synthetic.opening import Opening, quantiles_of
from sfumato.synthetic.public import Public, public_cells
from sfumato.synthetic.relational import Family, family_of, rows_of
from sfumato.synthetic.relational_task import ChildTask, RelationalTask
from sfumato.synthetic.rules import Rule
from sfumato.synthetic.schedule import ALIKE_TOGETHER, Schedule
from sfumato.synthetic.schema import Bins, Schema
from sfumato.synthetic.task import FitTask
from sfumato.synthetic.tree import Clique
from sfumato.synthetic.unit_table import UnitTable
from sfumato.synthetic.workload import weights_of

# How many marginals are chosen for each column of a child; and if little is spent.
_ROUNDS, _FEW_ROUNDS = 3, 2


def planned(
    dataset: Dataset,
    family: Family,
    allowed: Allowance,
    constraints: Sequence[Constraint | Public],
    workload: Mapping[str, int],
    *,
    rounds: int | None = None,
    check: Number = "0.05",
    bins: Mapping[str, Bins] | None = None,
    triples: bool = False,
) -> RelationalTask:
    """Returns the planned task of a fit of several tables; each table's share of the cost is
    proportional to its number of columns.

    ``bins`` says which columns have bins at quantiles.

    Raises:
        UnknownName, WrongUse: as ``fit``.
    """
    size = dataset.tables[family.parent].size
    columns = [len(family.widened(0)), *(len(child.axes) for child in family.children)]
    schedules = []
    schemas = _schemas(family, rows_of(dataset, family))
    openings = Opening.of_each(
        dataset, schemas, _quantile_bins(schemas, bins, constraints), allowed
    )
    left = allowed
    for opening in openings:
        left = left if opening is None else opening.left(left)
    parts = left.shares(*columns)
    for place, (number, share) in enumerate(zip(columns, parts, strict=True)):
        part = replace(allowed, amount=share)
        found = Schedule.of(number, part, size=size, rounds=rounds, check=check)
        found = replace(found, neighbours=found.faint == 1, alike=ALIKE_TOGETHER)
        schedules.append(_plan_child(family, place, found, rounds) if place else found)
    stated = _Stated(constraints, workload, triples)
    return built(dataset, family, schedules, stated, openings)


def _schemas(
    family: Family,
    rows: BoundedRows,
) -> list[Schema]:
    """Returns the columns of each table; the parent's include the number of rows of each child."""
    found = [Schema(family.parent, family.widened(0), UnitTable(family, rows, 0))]
    for place, child in enumerate(family.children, start=1):
        found.append(Schema(child.table, child.axes, UnitTable(family, rows, place)))
    return found


def _quantile_bins(
    schemas: Sequence[Schema],
    bins: Mapping[str, Bins] | None,
    constraints: Sequence[Constraint | Public],
) -> list[dict[str, int]]:
    """Returns, for each table, the columns whose bins are at quantiles."""
    bins_by_table = []
    for place, schema in enumerate(schemas):
        start = f"{schema.table}."
        own = {}
        for name, each in (bins or {}).items():
            if name.startswith(start):
                own[name.removeprefix(start)] = each
        # constraints are on columns of the parent
        bins_by_table.append(quantiles_of(schema, own, () if place else constraints))
    return bins_by_table


@dataclass(frozen=True, slots=True)
class _Stated:
    """What the user states about the rows: constraints, public marginals, and the workload."""

    constraints: Sequence[Constraint | Public]
    workload: Mapping[str, int]
    triples: bool

    @property
    def tests(self) -> list[Constraint]:
        """The constraints that every row obeys."""
        return [each for each in self.constraints if isinstance(each, Constraint)]

    @property
    def publics(self) -> list[Public]:
        """The public marginals."""
        return [each for each in self.constraints if isinstance(each, Public)]

    @property
    def told(self) -> dict[str, Any]:
        """Returns the statements as JSON."""
        stated: dict[str, Any] = {
            "constraints": [each.test for each in self.tests],
            "workload": dict(self.workload),
        }
        if self.publics:
            stated["public"] = [each.told for each in self.publics]
        if self.triples:
            stated["triples"] = True
        return stated

    @classmethod
    def remade(cls, arguments: Mapping[str, Any]) -> "_Stated":
        """Builds the statements from stored arguments."""
        constraints: list[Constraint | Public] = [
            Constraint(test) for test in arguments["constraints"]
        ]
        constraints += [Public.remade(each) for each in arguments.get("public", [])]
        return cls(constraints, arguments["workload"], arguments.get("triples", False))


def _plan_child(
    family: Family,
    table: int,
    schedule: Schedule,
    rounds: int | None,
) -> Schedule:
    """Returns the schedule of a child, whose columns may also be paired with those of the
    parent.
    """
    own, wide = schedule.columns, len(family.widened(table))
    possible = own * (own - 1) // 2 + own * (wide - own)
    each = _FEW_ROUNDS if schedule.neighbours else _ROUNDS
    taken = each * own if rounds is None else rounds
    return replace(schedule, rounds=min(taken, possible))


def built(
    dataset: Dataset,
    family: Family,
    schedules: Sequence[Schedule],
    stated: _Stated,
    openings: Sequence[Opening | None],
) -> RelationalTask:
    """Returns the task, with the arguments from which ``remade`` builds it again."""
    rows = rows_of(dataset, family)
    weights = _weights(family, stated.workload)
    schemas = _schemas(family, rows)
    schema = schemas[0]
    rules = (*rules_of(schema, stated.tests), *_nesting_rules(family))
    parent = FitTask(
        schema,
        schedules[0],
        "{}",
        rules,
        weights[0],
        publics=public_cells(schema, stated.publics, rules),
        triples=stated.triples,
    )
    children = []
    for place in range(1, len(schemas)):
        plan = UnitTable(family, rows, place)
        children.append(_with_checks(ChildTask(plan, schedules[place], weights[place])))
    arguments = {
        **_arguments_of(dataset, family),
        **stated.told,
        "schedules": [_schedule_to_json(each) for each in schedules],
        "protected": " ".join(protection(dataset, rows.unit)),
    }
    if any(openings):
        arguments["openings"] = [
            None if opening is None else opening.told(schema)
            for opening, schema in zip(openings, schemas, strict=True)
        ]
    told = json.dumps(arguments, sort_keys=True)
    return RelationalTask(parent, tuple(children), rows, told, tuple(openings))


def _with_checks(
    task: ChildTask,
) -> ChildTask:
    """Returns the task, without its honest check if there are too few pairs for one."""
    if len(task.countable) >= task.schedule.checks:
        return task
    return replace(task, schedule=replace(task.schedule, check=Fraction(0)))


def remade(
    dataset: Dataset,
    arguments: Mapping[str, Any],
) -> RelationalTask:
    """Rebuilds the task of a fit of several tables from the arguments stored with its answer;
    raises WrongUse if the declarations have changed.
    """
    openings = arguments.get("openings", [None] * len(arguments["tables"]))
    family = _family_of(dataset, arguments, openings)
    schedules = [_schedule_from_json(told) for told in arguments["schedules"]]
    norm = schedules[0].allowance.norm
    opened: list[Opening | None] = []
    for schema, told in zip(_schemas(family, rows_of(dataset, family)), openings, strict=True):
        opened.append(None if told is None else Opening.remade(dataset, schema, norm, told))
    return built(dataset, family, schedules, _Stated.remade(arguments), opened)


def _family_of(
    dataset: Dataset,
    arguments: Mapping[str, Any],
    openings: Sequence[Mapping[str, Any] | None],
) -> Family:
    """Builds the tables, with their columns and cells, from stored arguments."""
    columns = []
    for name, own in arguments["columns"].items():
        columns += [f"{name}.{column}" for column in own]
    texts = {}
    for name, told in zip(arguments["tables"], openings, strict=True):
        for column, rest in (told or {"texts": {}})["texts"].items():
            texts[f"{name}.{column}"] = rest
    family = family_of(dataset, arguments["tables"], columns, order=arguments["order"], texts=texts)
    starts = arguments["starts"]
    for place, (name, axes) in enumerate(zip(family.tables, family.own, strict=True)):
        cut_axes = []
        for one in axes:
            cut = starts.get(f"{name}.{one.name}")
            cut_axes.append(replace(one, starts=None if cut is None else tuple(cut)))
        family = family.with_axes(place, cut_axes)
    return family


def _nesting_rules(family: Family) -> list[Rule]:
    """Returns the rules that a unit without rows in a table has no rows that refer to rows of
    it.
    """
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
    """Returns, for each table, the weights of the pairs whose columns the workload names."""
    weights_by_table, known = [], []
    for place, (table, own) in enumerate(zip(family.tables, family.own, strict=True)):
        others = [one.name for one in family.widened(place)[len(own) :]]
        names = [*(f"{table}.{one.name}" for one in own), *others]
        known += names
        weights_by_table.append(
            weights_of(names, {name: workload[name] for name in names if name in workload})
        )
    unknown = [name for name in workload if name not in known]
    if unknown:
        raise UnknownName(f"No column {shown(unknown[0])}.", allowed=", ".join(known))
    return weights_by_table


def _arguments_of(
    dataset: Dataset,
    family: Family,
) -> dict[str, Any]:
    """Returns the tables with their columns, bins and orders as JSON."""
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


def _schedule_to_json(schedule: Schedule) -> dict[str, Any]:
    """Returns a schedule as JSON."""
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
        "neighbours": schedule.neighbours,
    }


def _schedule_from_json(
    stored: Mapping[str, Any],
) -> Schedule:
    """Builds a schedule from JSON."""
    delta = None if stored["delta"] is None else Fraction(stored["delta"])
    allowed = Allowance(Norm[stored["norm"]], Fraction(stored["amount"]), delta)
    sizes = stored["columns"], stored["rounds"], stored["limit"], stored["faint"]
    # earlier fits did not say
    neighbours = stored.get("neighbours", False)
    return Schedule(allowed, *sizes, Fraction(stored["check"]), neighbours, ALIKE_TOGETHER)
