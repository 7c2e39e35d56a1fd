# SPDX-License-Identifier: Apache-2.0
"""``fit``, ``preview`` and ``load``: the entry points for synthetic data under one charge.

They plan a ``FitTask`` (one table) or ``RelationalTask`` (several) from declarations, let the
session run it, and build a ``Model`` from the stored answer.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from sfumato.errors import UnknownName, WrongUse, shown
from sfumato.exact.rational import Number
from sfumato.metadata.dataset import Dataset
from sfumato.privacy.distance import Norm
from sfumato.query.allowance import Allowance, price_of
from sfumato.query.cost import Cost
from sfumato.query.explain import protection
from sfumato.query.session import Session
from sfumato.query.task import Stored
from sfumato.synthetic.constraints import Constraint, rules_of
from sfumato.synthetic.estimate import Estimator
from sfumato.synthetic.model import Model, TableModel
from sfumato.synthetic.opening import Opening, quantiles_of
from sfumato.synthetic.preview import Preview, preview_of
from sfumato.synthetic.public import Public, public_cells
from sfumato.synthetic.relational import family_of
from sfumato.synthetic.relational_model import RelationalModel
from sfumato.synthetic.relational_plan import planned, remade
from sfumato.synthetic.relational_task import RelationalTask
from sfumato.synthetic.schedule import Schedule
from sfumato.synthetic.schema import Axis, Bins, Schema, TextAxis, schema_of
from sfumato.synthetic.task import FitTask, is_stopped
from sfumato.synthetic.workload import weights_of

# The options that map a column or a table to a setting, with an example of each.
_BY_COLUMN = {
    "bins": '{"age": 10}',
    "texts": '{"city": "(other)"}',
    "order": '{"visits": "day"}',
}


@dataclass(frozen=True)
class Options:
    """The arguments of a fit that are neither tables nor cost.

    Args:
        columns: the columns to synthesise; by default all with declared values.
        bins: for an ordered column, the number of its bins, ``Quantiles(32)`` for bins that the
            charge finds, or the first value of each bin but the first. By default, columns with
            more than 256 values have ``Quantiles(64)``, and those with more than 4,096
            ``Quantiles(32)``: a frequent value has a bin of its own. If a constraint tests them,
            they have 64 bins of one width.
        rounds: how many marginals of two columns are measured; by default, as many as the cost
            pays for. With 24, a fit is fast.
        check: the share of the cost that is spent on marginals that the fit never sees.
        order: of several tables, the column that orders the rows of a unit, by table; by default
            the first date or timestamp; "" for none.
        texts: for a ``Text``, the placeholder of its rare values. The others are released: those
            whose noisy number of units passes a threshold. Needs a delta.
        triples: whether three columns may be measured together, too, where the model does not
            grow with them; of several tables, columns of the first.

    >>> Options(bins={"age": [18, 65]}, rounds=24).check
    '0.05'
    """

    columns: Sequence[str] | None = None
    bins: Mapping[str, Bins] | None = None
    rounds: int | None = None
    check: Number = "0.05"
    order: Mapping[str, str] | None = None
    texts: Mapping[str, str] | None = None
    triples: bool = False

    def __post_init__(self) -> None:
        for name, example in _BY_COLUMN.items():
            given = getattr(self, name)
            if given is not None and not isinstance(given, Mapping):
                raise WrongUse(f"{name}={shown(given)}.", allowed=example)


def fit(
    session: Session,
    tables: str | Sequence[str],
    *,
    epsilon: Number | None = None,
    rho: Number | None = None,
    delta: Number | None = None,
    constraints: Sequence[Constraint | Public] = (),
    workload: Mapping[str, int] | None = None,
    options: Options | None = None,
) -> Model:
    """Measures tables under one charge, and fits a model from which rows are drawn at no cost.

    The same fit again is recalled from the ledger, at no cost. ``epsilon`` with ``delta``, or
    ``rho``, pay for Gaussian noise, which is far smaller here than the Laplace noise of ``epsilon``
    alone.

    Args:
        constraints: what holds for every row (``require``, ``implies``, ``determines``), and
            marginals that are known exactly (``public``); none of it may come from the data.
        workload: how much columns matter, from 0 to 1,000, by name; pairs with a column count as
            much as the heavier of the two, and 1 by default.
        options: columns, bins, rounds and the share of the honest check.

    Raises:
        UnknownName, MissingDeclaration, WrongUse, InvalidNumber: before anything is charged.
        KeyboardInterrupt: Ctrl-C while a model was computed between measurements. What was
            measured is stored, with fewer pairs: ``load``, and the same fit, go on with it.
        Others as ``Session.ask``.

    >>> import sfumato as sf, pyarrow as pa, tempfile
    >>> rows = pa.table({"age": [20, 70] * 2000, "smoker": [True, False] * 2000})
    >>> people = sf.Table(rows, columns={"age": sf.Integer(0, 99), "smoker": sf.Boolean()})
    >>> folder = tempfile.TemporaryDirectory()
    >>> with sf.connect({"people": people}, dataset="tiny", budget=sf.Budget(10, "1e-6"),
    ...                 ledger=folder.name + "/l.db") as session:
    ...     model = fit(session, "people", epsilon=2, delta="1e-9")
    >>> sampled = model.sample()["people"]
    >>> sampled.column_names, abs(len(sampled) - 4000) < 100
    (['age', 'smoker'], True)
    >>> folder.cleanup()
    """
    chosen = _options_or_defaults(options)
    allowed = price_of(keys=bool(chosen.texts), epsilon=epsilon, rho=rho, delta=delta)
    task = _task(session.dataset, tables, allowed, constraints, workload, chosen)
    cost = session.price(task)
    stored = session.ask(task)
    if not stored.recalled:
        _require_whole(stored)
    return _model(session.dataset, task, stored, cost)


def _require_whole(stored: Stored) -> None:
    """Raises KeyboardInterrupt again, after a fit that it ended early has been stored."""
    if is_stopped(stored.body):
        raise KeyboardInterrupt(
            f"What was measured until then is paid for and stored: "
            f"synthetic.load(session, {stored.charge!r})"
        )


def preview(
    session: Session,
    tables: str | Sequence[str],
    *,
    epsilon: Number | None = None,
    rho: Number | None = None,
    delta: Number | None = None,
    constraints: Sequence[Constraint | Public] = (),
    workload: Mapping[str, int] | None = None,
    options: Options | None = None,
) -> Preview:
    """Returns what ``fit`` with these arguments would measure, at what cost and error; costs no
    budget.

    Raises:
        As ``fit``, but for what an account can pay.

    >>> import sfumato as sf, pyarrow as pa, tempfile
    >>> people = sf.Table(pa.table({"age": [30], "job": ["smith"]}),
    ...                   columns={"age": sf.Integer(0, 99), "job": sf.Text()})
    >>> folder = tempfile.TemporaryDirectory()
    >>> with sf.connect({"people": people}, dataset="tiny", budget=sf.Budget(10, "1e-6"),
    ...                 ledger=folder.name + "/l.db") as session:
    ...     preview(session, "people", epsilon=2, delta="1e-9").left_out
    ('job',)
    >>> folder.cleanup()
    """
    chosen = _options_or_defaults(options)
    allowed = price_of(keys=bool(chosen.texts), epsilon=epsilon, rho=rho, delta=delta)
    task = _task(session.dataset, tables, allowed, constraints, workload, chosen)
    found = preview_of(task, session.price(task), session.dataset)
    return replace(found, balances=session.balances)


def load(
    session: Session,
    charge_id: str,
    *,
    estimator: Estimator | None = None,
) -> Model:
    """Builds the model of an earlier fit again from its stored measurements; costs no budget.

    ``estimator`` replaces the built-in estimator.

    Raises:
        UnknownName: this account has no such charge.
        WrongUse: the charge is no fit, or one for other declarations.

    >>> import sfumato as sf, pyarrow as pa, tempfile
    >>> rows = pa.table({"smoker": [True, False] * 99})
    >>> people = sf.Table(rows, columns={"smoker": sf.Boolean()})
    >>> folder = tempfile.TemporaryDirectory()
    >>> with sf.connect({"people": people}, dataset="tiny", budget=sf.Budget(10, "1e-6"),
    ...                 ledger=folder.name + "/l.db") as session:
    ...     model = fit(session, "people", epsilon=1)
    ...     again = load(session, model.charge_id)
    >>> again.rows == model.rows
    True
    >>> folder.cleanup()
    """
    stored = session.stored(charge_id)
    try:
        facts = json.loads(stored.body.partition(b"\n")[0])
    except ValueError:
        facts = {}
    if not isinstance(facts, dict) or facts.get("kind") != FitTask.kind:
        raise WrongUse(f"The charge {shown(charge_id)} is no synthetic fit.")
    task = _task_of(session.dataset, facts["asked"])
    task.ready(session.dataset)
    task.require_measured(facts)
    return _model(session.dataset, task, stored, session.price(task), estimator)


def _model(
    dataset: Dataset,
    task: FitTask | RelationalTask,
    stored: Stored,
    cost: Cost,
    estimator: Estimator | None = None,
) -> Model:
    """Returns the model of one table or of several."""
    if isinstance(task, RelationalTask):
        return RelationalModel(task, stored, cost, dataset, estimator)
    return TableModel(task, stored, cost, estimator)


def _task(
    dataset: Dataset,
    tables: str | Sequence[str],
    allowed: Allowance,
    constraints: Sequence[Constraint | Public] = (),
    workload: Mapping[str, int] | None = None,
    options: Options | None = None,
) -> FitTask | RelationalTask:
    """Returns the task of a fit of one table or several; reads declarations only."""
    _require_constraints(constraints)
    weights = {} if workload is None else workload
    if not isinstance(weights, Mapping):
        raise WrongUse(f"workload={shown(weights)}.", allowed='{"income": 10}')
    chosen = options or Options()
    if type(chosen.triples) is not bool:
        raise WrongUse(f"triples={shown(chosen.triples)}.", allowed="True or False")
    if not isinstance(tables, list | tuple) or len(tables) < 2:
        return _fit_task(dataset, tables, allowed, constraints, weights, chosen)
    family = family_of(dataset, tables, chosen.columns, chosen.bins, chosen.order, chosen.texts)
    return planned(
        dataset,
        family,
        allowed,
        constraints,
        weights,
        rounds=chosen.rounds,
        check=chosen.check,
        bins=chosen.bins,
        triples=chosen.triples,
    )


def _options_or_defaults(options: object) -> Options:
    """Returns the options of a fit; the defaults for None."""
    if options is None:
        return Options()
    if not isinstance(options, Options):
        raise WrongUse(f"options={shown(options)}.", allowed='sy.Options(bins={"pay": 10})')
    if isinstance(options.columns, str):
        raise WrongUse(
            f"columns={shown(options.columns)}.", allowed=f"columns=[{options.columns!r}]"
        )
    return options


def _require_constraints(constraints: object) -> None:
    """Raises WrongUse unless the argument is a list of constraints."""
    is_list = isinstance(constraints, Sequence)
    for each in constraints if isinstance(constraints, Sequence) else [constraints]:
        if not is_list or not isinstance(each, Constraint | Public):
            raise WrongUse(
                f"The constraint {shown(each)}.",
                allowed="a list of constraints of require(), implies(), determines() and public()",
                remedy='constraints=[sy.require("start <= finish")]',
            )


def _fit_task(
    dataset: Dataset,
    tables: str | Sequence[str],
    allowed: Allowance,
    constraints: Sequence[Constraint | Public] = (),
    workload: Mapping[str, int] | None = None,
    options: Options | None = None,
) -> FitTask:
    """Returns the task of a fit of one table; reads declarations only."""
    table = _table_of(tables)
    chosen = options or Options()
    schema = schema_of(dataset, table, chosen.columns, chosen.bins, chosen.texts)
    quantiles = quantiles_of(schema, chosen.bins or {}, constraints)
    opening = Opening.of(dataset, schema, quantiles, allowed)
    size = dataset.tables[table].size
    schedule = Schedule.of(
        len(schema.axes),
        opening.left(allowed) if opening else allowed,
        size=size,
        rounds=chosen.rounds,
        check=chosen.check,
    )
    plan = _Planned(dataset, schema, schedule, opening, chosen.triples)
    return _build_task(plan, constraints, dict(workload or {}))


def _table_of(tables: object) -> str:
    """Returns the single table that is named; it need not be declared."""
    names = [tables]
    if isinstance(tables, list | tuple):
        names = list(tables)
    if len(names) != 1:
        raise WrongUse(
            f"A fit of {len(names)} tables.", allowed="one table or more, by their names"
        )
    if not isinstance(names[0], str):
        raise UnknownName(f"No table {shown(names[0])}.", remedy='The name of a table: "people".')
    return names[0]


@dataclass(frozen=True)
class _Planned:
    """The plan of a fit of one table: its columns and its schedule."""

    dataset: Dataset
    schema: Schema
    schedule: Schedule
    opening: Opening | None
    triples: bool


def _build_task(
    plan: _Planned,
    constraints: Sequence[Constraint | Public],
    workload: Mapping[str, int],
) -> FitTask:
    """Returns the task, with the arguments from which ``load`` builds it again."""
    schema = plan.schema
    tests = [each for each in constraints if isinstance(each, Constraint)]
    publics = [each for each in constraints if isinstance(each, Public)]
    arguments = {
        **_arguments_of(plan),
        "constraints": [each.test for each in tests],
        "workload": dict(workload),
    }
    if publics:
        arguments["public"] = [each.told for each in publics]
    rules = rules_of(schema, tests)
    return FitTask(
        schema,
        plan.schedule,
        json.dumps(arguments, sort_keys=True),
        rules,
        weights_of(schema.names, workload),
        plan.opening,
        public_cells(schema, publics, rules),
        plan.triples,
    )


def _arguments_of(plan: _Planned) -> dict[str, Any]:
    """Returns the columns with their bins, and the schedule, as JSON."""
    schema, schedule = plan.schema, plan.schedule
    allowed = schedule.allowance
    declared = plan.dataset.tables[schema.table].columns
    starts: dict[str, list[int]] = {}
    for axis in schema.axes:
        if axis.starts is not None:
            starts[axis.name] = list(axis.starts)
    arguments = {
        "table": schema.table,
        "columns": list(schema.names),
        "starts": starts,
        "norm": allowed.norm.name,
        "amount": str(allowed.amount),
        "delta": None if allowed.delta is None else str(allowed.delta),
        "rounds": schedule.rounds,
        "limit": schedule.limit,
        "faint": schedule.faint,
        "check": str(schedule.check),
        "left_out": [name for name in declared if name not in schema.names],
        "protected": " ".join(protection(plan.dataset, schema.plan.unit)),
    }
    if schedule.neighbours:
        arguments["neighbours"] = True
    if plan.opening is not None:
        arguments["opening"] = plan.opening.told(schema)
    if plan.triples:
        arguments["triples"] = True
    return arguments


def _task_of(
    dataset: Dataset,
    stored_arguments: Mapping[str, object],
) -> FitTask | RelationalTask:
    """Builds the task from stored arguments; raises WrongUse if the declarations have changed."""
    arguments = json.loads(json.dumps(stored_arguments))
    if "tables" in arguments:
        return remade(dataset, arguments)
    schema = _schema_of(dataset, arguments)
    delta = None if arguments["delta"] is None else Fraction(arguments["delta"])
    allowed = Allowance(Norm[arguments["norm"]], Fraction(arguments["amount"]), delta)
    opening = None
    if "opening" in arguments:
        opening = Opening.remade(dataset, schema, allowed.norm, arguments["opening"])
    schedule = Schedule(
        allowed,
        len(schema.axes),
        arguments["rounds"],
        arguments["limit"],
        arguments["faint"],
        Fraction(arguments["check"]),
        arguments.get("neighbours", False),
    )
    constraints: list[Constraint | Public] = [Constraint(test) for test in arguments["constraints"]]
    constraints += [Public.remade(each) for each in arguments.get("public", [])]
    plan = _Planned(dataset, schema, schedule, opening, arguments.get("triples", False))
    return _build_task(plan, constraints, arguments["workload"])


def _schema_of(
    dataset: Dataset,
    arguments: Mapping[str, Any],
) -> Schema:
    """Builds the columns, with their bins, from stored arguments."""
    texts = arguments["opening"]["texts"] if "opening" in arguments else {}
    schema = schema_of(dataset, arguments["table"], arguments["columns"], texts=texts)
    axes: list[Axis] = []
    for axis in schema.axes:
        starts = arguments["starts"].get(axis.name)
        if isinstance(axis, TextAxis):
            axes.append(axis)
        else:
            axes.append(Axis(axis.column, None if starts is None else tuple(starts)))
    return Schema.over(dataset, arguments["table"], axes)
