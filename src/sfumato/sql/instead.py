# SPDX-License-Identifier: Apache-2.0
"""Statements that may be answered in place of a refused one, the nearest in meaning first.

They are proposals: ``sfumato.query.instead`` offers the first that can be planned.
"""

import difflib
from collections.abc import Callable, Iterator
from typing import TypeAlias

from sqlglot import exp

from sfumato.metadata.dataset import Dataset
from sfumato.sql.calls import calls
from sfumato.sql.conditions import conjuncts
from sfumato.sql.declared_list import is_distinct
from sfumato.sql.tables import unit_columns

# Changes a statement in place; returns None if it has nothing to change.
Change: TypeAlias = Callable[[exp.Select, Dataset], exp.Select | None]
_LARGEST_KEY = 20
_LISTS = (exp.ArrayAgg, exp.GroupConcat, exp.Mode, exp.AnyValue, exp.First)
_TEXTS = (exp.Lower, exp.Upper, exp.Left, exp.Right, exp.Substring, exp.Trim)
_ADDED_UP = (exp.Count, exp.Sum)


def proposals(select: exp.Select, dataset: Dataset) -> Iterator[exp.Select]:
    """Yields statements near in meaning to a refused one, which may be allowed instead of it.

    >>> from sfumato.metadata.table import Table
    >>> data = Dataset("study", {"people": Table("people.csv")})
    >>> from sfumato.sql.parse import parse
    >>> [new.sql() for new in proposals(parse("SELECT * FROM people LIMIT 5"), data)]
    ['SELECT COUNT(*) AS n FROM people']
    """
    waiting = [select]
    for first in _FIRST:
        changed = first(select.copy(), dataset)
        if changed is not None:
            yield changed
            waiting.append(changed)
    for each in waiting:
        for change in _CHANGES:
            changed = change(each.copy(), dataset)
            if changed is not None:
                yield changed


def _keys(select: exp.Select) -> list[exp.Expr]:
    """The keys of GROUP BY, with the columns that positions and aliases stand for."""
    group = select.args.get("group")
    if group is None:
        return []
    items = select.expressions
    named = {item.alias.lower(): item.this for item in items if isinstance(item, exp.Alias)}
    keys = []
    for node in group.expressions:
        place = int(node.name) - 1 if isinstance(node, exp.Literal) and node.is_int else -1
        if 0 <= place < len(items):
            node = items[place].unalias()
        elif isinstance(node, exp.Column) and not node.table:
            node = named.get(node.name.lower(), node)
        keys.append(node)
    return keys


def _spelled(select: exp.Select, dataset: Dataset) -> exp.Select | None:
    """Nearest declared names in place of names that are not declared."""
    tables = {name.lower(): name for name in dataset.tables}
    columns = {name.lower(): name for table in dataset.tables.values() for name in table.columns}
    columns |= {name: name for name in unit_columns(dataset)}
    own = {node.alias.lower() for node in select.find_all(exp.Alias, exp.TableAlias, exp.CTE)}
    own |= {node.alias_or_name.lower() for node in select.find_all(exp.Subquery)}
    is_changed = False
    for node in select.find_all(exp.Table, exp.Column):
        known = tables if isinstance(node, exp.Table) else columns
        name = node.name.lower()
        if isinstance(node.this, exp.Star) or name in known or name in own:
            continue
        near = difflib.get_close_matches(name, list(known), 1)
        if near:
            node.set("this", exp.to_identifier(known[near[0]]))
            is_changed = True
    return select if is_changed else None


def _met_once(select: exp.Select, dataset: Dataset) -> exp.Select | None:
    """A test of persons in place of a join on the unit whose columns are only tested."""
    joins = select.args.get("joins") or []
    if len(joins) != 1 or joins[0].side or joins[0].args.get("using"):
        return None
    (join,) = joins
    name = join.alias_or_name.lower()
    where = select.args.get("where")
    clauses = [join.args.get("on"), None if where is None else where.this]
    tests = [test for clause in clauses if clause is not None for test in conjuncts(clause)]
    link = next((test for test in tests if _is_link(test, name, unit_columns(dataset))), None)
    if link is None or not isinstance(join.this, exp.Table):
        return None
    inside = [test for test in tests if test is not link and _tables(test) == {name}]
    outside = [test for test in tests if test is not link and test not in inside]
    rest = [*select.expressions, *outside, *_keys(select), select.args.get("having")]
    if any(name in _tables(node) or "" in _tables(node) for node in rest if node is not None):
        return None
    ours, theirs = link.this, link.expression
    if ours.table.lower() == name:
        ours, theirs = theirs, ours
    persons = exp.select(theirs.copy()).from_(join.this.copy())
    if inside:
        persons = persons.where(*[test.copy() for test in inside])
    select.set("joins", None)
    select.set("where", None)
    member = exp.In(this=ours.copy(), query=exp.Subquery(this=persons))
    return select.where(*[test.copy() for test in outside], member)


def _tables(node: exp.Expr) -> set[str]:
    """The tables that the columns of an expression name, "" for none."""
    return {column.table.lower() for column in node.find_all(exp.Column)}


def _is_link(test: exp.Expr, name: str, units: set[str]) -> bool:
    """Whether a test joins the unit of a table to that of another."""
    sides = (test.this, test.expression) if isinstance(test, exp.EQ) else ()
    are_units = all(isinstance(side, exp.Column) and side.name.lower() in units for side in sides)
    return bool(sides) and are_units and name in _tables(test) and len(_tables(test)) == 2


def _using_unit(select: exp.Select, dataset: Dataset) -> exp.Select | None:
    """A join by the unit in place of a NATURAL one."""
    units = sorted(unit_columns(dataset))
    natural = [node for node in select.find_all(exp.Join) if node.method == "NATURAL"]
    if not natural or len(units) != 1:
        return None
    for join in natural:
        join.set("method", None)
        join.set("using", [exp.to_identifier(units[0])])
    return select


def _per_person(select: exp.Select, dataset: Dataset) -> exp.Select | None:
    """The mean over persons of aggregates that are grouped by person."""
    units = unit_columns(dataset)
    keys = _keys(select)
    others = [key for key in keys if not _is_column(key, units)]
    if len(others) == len(keys) or not calls([*select.expressions]):
        return None
    shown: list[exp.Expr] = []
    for item in list(select.expressions):
        if _is_column(item.unalias(), units):
            continue
        name = item.alias_or_name
        if not isinstance(item, exp.Alias | exp.Column):
            name = f"value{len(shown) + 1}"
            item.replace(exp.alias_(item.copy(), name))
        column = exp.column(name)
        shown.append(exp.alias_(exp.Avg(this=column), name) if calls([item]) else column)
    for clause in ("order", "limit", "offset"):
        select.set(clause, None)
    plain = [column.copy() for column in shown if isinstance(column, exp.Column)]
    outer = exp.select(*shown).from_(exp.alias_(exp.Subquery(this=select), "person", table=True))
    return outer.group_by(*plain) if plain else outer


def _is_column(node: exp.Expr, names: set[str]) -> bool:
    return isinstance(node, exp.Column) and node.name.lower() in names


def _run_up(select: exp.Select, dataset: Dataset) -> exp.Select | None:
    """Sums over groups that add up, in place of sums over rows that do."""
    windows = [item for item in select.expressions if isinstance(item.unalias(), exp.Window)]
    rest = [item.unalias() for item in select.expressions if item not in windows]
    calm = all(_adds_up(window.unalias().this) for window in windows)
    if not windows or not calm or select.args.get("group"):
        return None
    if not all(isinstance(item, exp.Column) for item in rest):
        return None
    keys = {item.sql(): item for item in rest}
    for item in windows:
        window = item.unalias()
        for clause in (*(window.args.get("partition_by") or []), window.args.get("order")):
            for column in clause.find_all(exp.Column) if clause else ():
                keys.setdefault(column.sql(), column)
        window.this.replace(exp.Sum(this=window.this.copy()))
    missing = [key.copy() for key in keys.values() if key not in rest]
    select.set("expressions", [*missing, *[item.copy() for item in select.expressions]])
    if not keys:
        return select
    return select.group_by(*[key.copy() for key in keys.values()])


def _values_counted(select: exp.Select, dataset: Dataset) -> exp.Select | None:
    """Counts of the values of a column, in place of a list of them or the most frequent."""
    lists = [node for node in calls(select.expressions) if isinstance(node, _LISTS)]
    if len(lists) != 1 or len(calls(select.expressions)) != 1:
        return None
    column = lists[0].find(exp.Column)
    if column is None or select.args.get("having"):
        return None
    keys = [key.copy() for key in (*_keys(select), column)]
    counted = exp.alias_(exp.Count(this=exp.Star()), "n")
    select.set("expressions", [*[key.copy() for key in keys], counted])
    select.set("group", exp.Group(expressions=keys))
    for clause in ("order", "limit", "offset"):
        select.set(clause, None)
    return select.order_by("n DESC") if isinstance(lists[0], exp.Mode) else select


def _occurring_counted(select: exp.Select, dataset: Dataset) -> exp.Select | None:
    """The number of values that occur, in place of that of the declared ones."""
    clauses = {name for name, value in select.args.items() if value}
    if clauses != {"expressions", "from_"} or len(select.expressions) != 1:
        return None
    (item,) = select.expressions
    listed = select.args["from_"].this.unnest()
    counted = item.unalias()
    if not isinstance(counted, exp.Count) or not isinstance(counted.this, exp.Star):
        return None
    if not isinstance(listed, exp.Select) or not is_distinct(listed):
        return None
    if len(listed.expressions) != 1 or listed.args.get("limit"):
        return None
    value = listed.expressions[0].unalias().copy()
    counted = exp.Count(this=exp.Distinct(expressions=[value]))
    listed.set("distinct", None)
    listed.set("order", None)
    listed.set("expressions", [exp.alias_(counted, item.alias or "n")])
    return listed


def _unsampled(select: exp.Select, dataset: Dataset) -> exp.Select | None:
    """All rows in place of a sample."""
    samples = list(select.find_all(exp.TableSample))
    for sample in samples:
        sample.pop()
    where = select.args.get("where")
    if where is None or where.find(exp.Rand) is None:
        return select if samples else None
    tests = [test.copy() for test in conjuncts(where.this) if test.find(exp.Rand) is None]
    select.set("where", None)
    return select.where(*tests) if tests else select


def _narrow(select: exp.Select, dataset: Dataset) -> exp.Select | None:
    """Keys cut at 20, for one that may have too many values."""
    keys = [key for key in _keys(select) if isinstance(key, exp.Column)]
    if len(keys) != 1 or len(_keys(select)) != 1:
        return None
    (key,) = keys
    most = exp.Literal.number(_LARGEST_KEY)
    cut = exp.Least(this=key.copy(), expressions=[most], ignore_nulls=True)
    for item in list(select.expressions):
        if item.unalias() == key:
            item.replace(exp.alias_(cut.copy(), item.alias_or_name))
    select.set("group", exp.Group(expressions=[cut]))
    return select


def _after_threshold(select: exp.Select, dataset: Dataset) -> exp.Select | None:
    """Functions of texts computed of the released texts, whose counts are added up."""
    keys = _keys(select)
    aggregates = calls(select.expressions)
    clauses = ("having", "order", "limit", "offset")
    is_plain = all(item.unalias() in [*keys, *aggregates] for item in select.expressions)
    if not is_plain or not aggregates or any(select.args.get(name) for name in clauses):
        return None
    if not any(key.find(*_TEXTS) for key in keys) or not all(map(_adds_up, aggregates)):
        return None
    columns = {column.sql(): column for key in keys for column in key.find_all(exp.Column)}
    shown: list[exp.Expr] = []
    counted: list[exp.Expr] = []
    for item in select.expressions:
        name = item.alias_or_name or f"value{len(shown) + 1}"
        if item.unalias() in aggregates:
            counted.append(exp.alias_(item.unalias().copy(), name))
            shown.append(exp.alias_(exp.Sum(this=exp.column(name)), name))
        else:
            key = item.unalias().copy()
            for column in list(key.find_all(exp.Column)):
                column.set("table", None)
            shown.append(exp.alias_(key, name))
    texts = [column.copy() for column in columns.values()]
    select.set("expressions", [*texts, *counted])
    select.set("group", exp.Group(expressions=[text.copy() for text in texts]))
    outer = exp.select(*shown).from_(exp.alias_(exp.Subquery(this=select), "texts", table=True))
    return outer.group_by(
        *[str(place) for place, item in enumerate(shown, 1) if not item.find(exp.Sum)]
    )


def _adds_up(call: exp.Expr) -> bool:
    """Whether an aggregate of all groups is the sum of those of the groups."""
    return isinstance(call, _ADDED_UP) and call.find(exp.Distinct) is None


def _rows_counted(select: exp.Select, dataset: Dataset) -> exp.Select | None:
    """The number of rows, in place of rows; of each value, in place of a list of values."""
    if calls(select.expressions) or select.args.get("group"):
        return None
    items = [item.unalias() for item in select.expressions]
    if not all(isinstance(item, exp.Column | exp.Star) for item in items):
        return None
    counted = exp.alias_(exp.Count(this=exp.Star()), "n")
    if select.args.get("distinct") and not select.find(exp.Star):
        select.set("group", exp.Group(expressions=[item.copy() for item in items]))
        select.set("expressions", [*[item.copy() for item in items], counted])
    else:
        select.set("expressions", [counted])
    for clause in ("distinct", "order", "limit", "offset", "qualify"):
        select.set(clause, None)
    return select


# Changes that may leave more to be changed.
_FIRST: tuple[Change, ...] = (_spelled, _unsampled, _using_unit)
_CHANGES: tuple[Change, ...] = (
    _met_once,
    _run_up,
    _after_threshold,
    _values_counted,
    _occurring_counted,
    _per_person,
    _narrow,
    _rows_counted,
)
