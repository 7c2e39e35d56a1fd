# SPDX-License-Identifier: Apache-2.0
"""Traces the columns of an outer statement to the released cells that they are computed from.

The traced statement has hidden columns beside the visible ones: the code of a cell that is passed
through, and the codes and number of the cells in a sum. From them ``query.outer_errors`` computes
intervals. What cannot be traced has no interval.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TypeAlias

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.qualify import qualify

from sfumato.sql.literal import literal
from sfumato.sql.outer_forms import (
    ANY_OR_NULL,
    NO_ROW,
    Computed,
    FixedNumber,
    Form,
    Kind,
    Known,
    Leaf,
    as_chosen,
    code_of,
    in_scope,
    may_be_null,
    merged,
    quoted,
    shape,
    with_places,
)

# The column of a table of answers with the number of its row, and the name of such a table.
ROW = "row number"
_SAME = (exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue, exp.NthValue)
_Names: TypeAlias = Mapping[type[exp.Expr], str]
_OPERATIONS: _Names = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/"}
_OF_SEVERAL: _Names = {exp.Coalesce: "first", exp.Greatest: "greatest", exp.Least: "least"}
_NONE: Mapping[str, Sequence[str]] = {}
_WHOLE = frozenset({"TINYINT", "SMALLINT", "INT", "BIGINT", "INT128"})


@dataclass(frozen=True, slots=True)
class Trace:
    """An outer statement with hidden columns, from which intervals of its columns are computed."""

    query: exp.Query
    columns: tuple[Known, ...]


@dataclass(frozen=True, slots=True)
class Inner:
    """The answer of a private question as a table of an outer statement; ``released``: is it noisy?

    ``chosen``: which rows it shows depends on released numbers.
    """

    columns: tuple[str, ...]
    released: tuple[bool, ...]
    chosen: bool


def traced(
    query: exp.Query, answers: Mapping[str, Inner], public: Mapping[str, Sequence[str]] = _NONE
) -> Trace | None:
    """Returns an outer statement with hidden columns that trace its numbers; None if impossible.

    ``answers`` has the answers by the names of their tables, ``public`` the columns of public ones.
    """
    schema: dict[str, object] = {
        name: dict.fromkeys(inner.columns, "int") for name, inner in answers.items()
    }
    schema |= {name: dict.fromkeys(columns, "int") for name, columns in public.items()}
    try:
        tree = qualify(
            query.copy(),
            schema=schema,
            dialect="duckdb",
            validate_qualify_columns=False,
            quote_identifiers=True,
        )
        tracer = _Tracer(answers, public)
        whole = tracer.query(tree, ())
        forms = tracer.hide(whole)
    except (SqlglotError, _Untraced):
        return None
    visible = len(forms)
    places = {name: visible + place for place, name in enumerate(tracer.names)}
    columns = []
    for known, form in zip(whole.columns, forms, strict=True):
        columns.append(Known(with_places(form, places), known.noisy))
    return Trace(tree, tuple(columns))


class _Untraced(Exception):
    """A statement has something that is not traced."""


@dataclass(slots=True)
class _Rows:
    """The rows of a query: its columns in order, and whether noise decides which rows there are.

    The hidden parts of their forms are expressions in the scope of the query.
    """

    node: exp.Query
    names: list[str]
    columns: list[Known]
    chosen: bool
    hides: bool = True


# The sources of a SELECT by the name of each, and by column; and those of the queries around it.
_Source: TypeAlias = dict[str, Known]
_Scope: TypeAlias = "tuple[dict[str, _Source], ...]"


@dataclass(slots=True)
class _Tracer:
    """Traces one statement. ``names`` are the hidden columns of the query that was hidden last."""

    answers: Mapping[str, Inner]
    public: Mapping[str, Sequence[str]]
    names: list[str] = field(default_factory=list)
    _count: int = 0
    _seen: dict[int, _Rows] = field(default_factory=dict)
    _arms: dict[int, tuple[_Rows, _Rows]] = field(default_factory=dict)

    def query(self, node: exp.Expr, around: _Scope) -> _Rows:
        """The rows of a query, which is traced once."""
        if id(node) not in self._seen:
            self._seen[id(node)] = self._query(node, around)
        return self._seen[id(node)]

    def _query(self, node: exp.Expr, around: _Scope) -> _Rows:
        if isinstance(node, exp.Subquery):
            # ORDER BY and LIMIT after the brackets
            if any(value for name, value in node.args.items() if name not in ("this", "alias")):
                raise _Untraced
            return self.query(node.this, around)
        if isinstance(node, exp.SetOperation):
            return self._set(node, around)
        if isinstance(node, exp.Select) and not node.args.get("with_"):
            return _Select(self, node, around).rows()
        raise _Untraced

    def _set(self, node: exp.SetOperation, around: _Scope) -> _Rows:
        """The rows of a set operation; only UNION ALL passes cells through."""
        left, right = self.query(node.this, around), self.query(node.expression, around)
        if len(left.columns) != len(right.columns):
            raise _Untraced
        is_all = isinstance(node, exp.Union) and node.args.get("distinct") is False
        columns = []
        for one, other in zip(left.columns, right.columns, strict=True):
            form = None
            if is_all and left.hides and right.hides and shape(one.form) == shape(other.form):
                form = merged(one.form, other.form)
            columns.append(Known(form, one.noisy or other.noisy))
        noisy = any(known.noisy for known in columns)
        chosen = left.chosen or right.chosen or (noisy and not is_all)
        chosen |= noisy and bool(node.args.get("limit") or node.args.get("offset"))
        if chosen:
            columns = [replace(known, form=as_chosen(known.form)) for known in columns]
        self._arms[id(node)] = (left, right)
        return _Rows(node, left.names, columns, chosen, is_all)

    def hide(self, rows: _Rows) -> list[Form | None]:
        """Adds the hidden columns of a query to it; its forms with the names of these columns."""
        arms = self._arms.get(id(rows.node))
        if arms is not None:
            for arm in arms:
                pairs = list(zip(arm.columns, rows.columns, strict=True))
                # a column has hidden ones in every arm, or in none
                arm.columns = [
                    one if whole.form else replace(one, form=None) for one, whole in pairs
                ]
            forms = self.hide(arms[0])
            names = self.names
            self.hide(arms[1])
            self.names = names
            both = zip(forms, rows.columns, strict=True)
            return [merged(form, known.form) for form, known in both]
        self.names = []
        forms = []
        for known in rows.columns:
            forms.append(None if known.form is None else self._named(rows.node, known.form))
        return forms

    def _named(self, node: exp.Query, form: Form) -> Form:
        """A form whose hidden columns were added to a query."""
        if isinstance(form, FixedNumber):
            return form
        if isinstance(form, Computed):
            return replace(form, parts=tuple(self._named(node, part) for part in form.parts))
        names = []
        for expression in form.hidden:
            self._count += 1
            name = f"hidden {self._count}"
            column = exp.alias_(expression.copy(), name, quoted=True)
            node.set("expressions", [*node.expressions, column])
            self.names.append(name)
            names.append(name)
        return replace(form, hidden=tuple(names))

    def source(self, node: exp.Expr, around: _Scope) -> tuple[str, _Source, bool]:
        """A table of FROM: its name, its columns, and whether noise chose its rows."""
        alias = node.alias_or_name
        if isinstance(node, exp.Table):
            if node.name in self.public:
                known = Known(None, noisy=False)
                named = _renamed(node, self.public[node.name])
                return alias, dict.fromkeys(map(str.lower, named), known), False
            inner = self.answers.get(node.name)
            if inner is None:
                raise _Untraced
            place = list(self.answers).index(node.name)
            row = exp.column(exp.to_identifier(ROW, quoted=True), table=quoted(alias))
            source: _Source = {}
            for number, (name, released) in enumerate(
                zip(_renamed(node, inner.columns), inner.released, strict=True)
            ):
                start = exp.Literal.number(code_of(place, number))
                code = exp.Paren(this=exp.Add(this=row.copy(), expression=start))
                leaf = Leaf(Kind.CELL, (code,), inner.chosen) if released else None
                source[name.lower()] = Known(leaf, released)
            return alias, source, inner.chosen
        if isinstance(node, exp.Values):
            public = Known(None, noisy=False)
            return alias, dict.fromkeys(map(str.lower, _renamed(node, ())), public), False
        if not isinstance(node, exp.Subquery):
            raise _Untraced
        rows = self.query(node.this, around)
        forms = self.hide(rows) if rows.hides else [None] * len(rows.columns)
        names = _renamed(node, rows.names)
        source = {}
        for name, known, form in zip(names, rows.columns, forms, strict=True):
            seen = None if form is None else in_scope(form, alias)
            source[name.lower()] = Known(seen, known.noisy)
        return alias, source, rows.chosen


class _Select:
    """Traces one SELECT."""

    def __init__(self, tracer: _Tracer, node: exp.Select, around: _Scope) -> None:
        self._tracer = tracer
        self._node = node
        self._sources: dict[str, _Source] = {}
        self._scope: _Scope = (self._sources, *around)
        self._aliases: dict[str, Known] = {}
        self._chosen = False
        self._grouped = node.args.get("group") is not None

    def rows(self) -> _Rows:
        """Its columns, and whether noise decides which rows there are."""
        node = self._node
        for source in [node.args.get("from_"), *(node.args.get("joins") or [])]:
            if source is None:
                continue
            name, known, is_chosen = self._tracer.source(source.this, self._scope[1:])
            self._sources[name.lower()] = known
            self._chosen |= is_chosen
            if isinstance(source, exp.Join):
                self._chosen |= self._is_noisy(source.args.get("on"))
                if source.args.get("using") or source.args.get("method"):
                    raise _Untraced
        self._chosen |= self._is_noisy(node.args.get("where"))
        self._chosen |= self._is_noisy(node.args.get("group"))
        names = [item.alias_or_name for item in node.expressions]
        columns = []
        for item in node.expressions:
            if item.is_star:
                raise _Untraced
            inner = item.unalias()
            noisy = self._is_noisy(inner)
            columns.append(Known(self._form(inner) if noisy else None, noisy))
            self._aliases.setdefault(item.alias_or_name.lower(), columns[-1])
        chosen = self._chosen
        for clause in ("having", "qualify"):
            chosen |= self._is_noisy(node.args.get(clause))
        if node.args.get("limit") or node.args.get("offset"):
            order = node.args.get("order")
            chosen |= order is None or self._is_noisy(order)
        hides = not node.args.get("distinct")
        if not hides:
            chosen |= any(column.noisy for column in columns)
            columns = [replace(column, form=None) for column in columns]
        if chosen:
            columns = [replace(column, form=as_chosen(column.form)) for column in columns]
        return _Rows(node, names, columns, chosen, hides)

    def _column(self, node: exp.Column) -> Known:
        """What is known of a column."""
        name = node.name.lower()
        if not node.table:
            if name in self._aliases:
                return self._aliases[name]
            raise _Untraced
        for sources in self._scope:
            source = sources.get(node.table.lower())
            if source is not None and name in source:
                return source[name]
        raise _Untraced

    def _is_noisy(self, node: exp.Expr | None) -> bool:
        """Whether an expression depends on released numbers, or on which rows noise chose."""
        if node is None:
            return False
        if isinstance(node, exp.Query):
            rows = self._tracer.query(node, self._scope)
            return rows.chosen or any(known.noisy for known in rows.columns)
        if isinstance(node, exp.Column):
            return self._column(node).noisy
        if self._chosen and isinstance(node, exp.AggFunc | exp.Window):
            return True
        return any(self._is_noisy(part) for part in node.iter_expressions())

    def _form(self, node: exp.Expr) -> Form | None:
        """The form of an expression; None if it has no interval."""
        value = literal(node) if isinstance(node, exp.Literal | exp.Neg) else None
        if isinstance(value, Fraction):
            return FixedNumber(value)
        if isinstance(node, exp.Column):
            known = self._column(node)
            if not known.noisy:
                return Leaf(Kind.PUBLIC, (node,))
            # of a group, which cell it is would have to be a key too
            return None if self._grouped else known.form
        if not self._is_noisy(node):
            return Leaf(Kind.PUBLIC, (node,))
        if isinstance(node, exp.Paren):
            return self._form(node.this)
        if isinstance(node, exp.Neg):
            return self._computed("-", [exp.Literal.number(0), node.this])
        if type(node) in _OPERATIONS:
            return self._computed(_OPERATIONS[type(node)], [node.this, node.expression])
        if isinstance(node, exp.Round):
            return self._rounded(node)
        if isinstance(node, exp.Case):
            results = [branch.args["true"] for branch in node.args["ifs"]]
            return self._any([*results, node.args.get("default")])
        if isinstance(node, exp.Nullif):
            return self._any([node.this, None])
        if type(node) in _OF_SEVERAL:
            form = self._computed(_OF_SEVERAL[type(node)], [node.this, *node.expressions])
            # GREATEST and LEAST leave a NULL out, and noise decides whether there is one
            is_known = form is not None and (form.operation == "first" or not may_be_null(form))
            return form if is_known else None
        if isinstance(node, exp.Cast):
            return self._cast(node)
        if isinstance(node, exp.Sum | exp.Avg):
            return self._sum(node, None)
        if isinstance(node, exp.Window):
            return self._window(node)
        if isinstance(node, exp.Subquery):
            return self._scalar(node)
        return None

    def _computed(self, operation: str, nodes: Sequence[exp.Expr]) -> Computed | None:
        """The form of an operation; None if a part has none."""
        parts = [self._form(node) for node in nodes]
        known = tuple(part for part in parts if part is not None)
        return Computed(operation, known) if len(known) == len(parts) else None

    def _any(self, nodes: Sequence[exp.Expr | None]) -> Form | None:
        """The form of a value that is one of several; a NULL among them is no number."""
        numbers = [node for node in nodes if node is not None and not isinstance(node, exp.Null)]
        operation = "any" if len(numbers) == len(nodes) else ANY_OR_NULL
        return self._computed(operation, numbers)

    def _rounded(self, node: exp.Round) -> Form | None:
        """The form of ROUND to a constant number of digits."""
        digits = node.args.get("decimals")
        value = Fraction(0) if digits is None else literal(digits)
        form = self._form(node.this)
        if form is None or not isinstance(value, Fraction) or not -300 <= value <= 300:
            return None
        return Computed("round", (form, FixedNumber(Fraction(10) ** -int(value))))

    def _cast(self, node: exp.Cast) -> Form | None:
        """The form of a CAST to a number."""
        kind = node.to.this.name
        form = self._form(node.this)
        if form is None or kind not in _WHOLE | {"FLOAT", "DOUBLE"}:
            return None
        if kind in _WHOLE:
            return Computed("round", (form, FixedNumber(Fraction(1))))
        return form if kind == "DOUBLE" else None

    def _sum(self, node: exp.Expr, window: exp.Window | None) -> Form | None:
        """The form of a sum or a mean of cells, over a group or a frame."""
        leaf = self._column(node.this).form if isinstance(node.this, exp.Column) else None
        if not isinstance(leaf, Leaf) or leaf.kind is not Kind.CELL or leaf.chosen or self._chosen:
            return None
        if window is not None and any(
            self._is_noisy(part) for name, part in _parts_of(window) if name != "this"
        ):
            return None
        # cells that are NULL are in no sum
        there = exp.Case(
            ifs=[
                exp.If(
                    this=exp.Not(this=exp.Is(this=node.this.copy(), expression=exp.Null())),
                    true=leaf.hidden[0].copy(),
                )
            ]
        )
        calls = [
            node.copy(),
            exp.Count(this=there),
            exp.Count(this=exp.Distinct(expressions=[there.copy()])),
            exp.Min(this=there.copy()),
            exp.Max(this=there.copy()),
        ]
        hidden = tuple(_over(call, window) for call in calls)
        kind = Kind.SUM if isinstance(node, exp.Sum) else Kind.MEAN
        return Leaf(kind, hidden)

    def _window(self, node: exp.Window) -> Form | None:
        """The form of a window function that passes a cell through or sums cells."""
        function = node.this
        if isinstance(function, exp.Sum | exp.Avg):
            return self._sum(function, node)
        nulls = isinstance(function, exp.IgnoreNulls)
        inner = function.this if isinstance(function, exp.IgnoreNulls) else function
        if not isinstance(inner, _SAME):
            return None
        leaf = self._form(inner.this)
        if not isinstance(leaf, Leaf) or leaf.kind is Kind.PUBLIC:
            return None
        noisy = any(self._is_noisy(part) for name, part in _parts_of(node) if name != "this")
        default, hidden = inner.args.get("default"), []
        for expression in leaf.hidden:
            passed = expression.copy()
            if nulls:
                there = exp.Not(this=exp.Is(this=inner.this.copy(), expression=exp.Null()))
                passed = exp.Case(ifs=[exp.If(this=there, true=passed)])
            call = inner.copy()
            call.set("this", passed)
            call.set("default", None if default is None else exp.Literal.number(NO_ROW))
            hidden.append(_over(exp.IgnoreNulls(this=call) if nulls else call, node))
        chosen = leaf.chosen or noisy or self._chosen
        passed_on = replace(leaf, hidden=tuple(hidden), chosen=chosen)
        if default is None:
            return passed_on
        instead = self._form(default)
        return None if instead is None else Computed("lagged", (passed_on, instead))

    def _scalar(self, node: exp.Subquery) -> Form | None:
        """The form of a sub-query in place of a number."""
        rows = self._tracer.query(node, self._scope)
        if len(rows.columns) != 1 or not rows.hides or not isinstance(rows.node, exp.Select):
            return None
        return _asked_apart(rows.columns[0].form, rows.node)


def _asked_apart(form: Form | None, select: exp.Select) -> Form | None:
    """The form of the one column of a sub-query, in the scope around it."""
    if form is None or isinstance(form, FixedNumber):
        return form
    if isinstance(form, Computed):
        parts = [_asked_apart(part, select) for part in form.parts]
        return replace(form, parts=tuple(part for part in parts if part is not None))
    hidden = []
    for expression in form.hidden:
        copied = select.copy()
        copied.set("expressions", [expression.copy()])
        hidden.append(exp.Subquery(this=copied))
    return replace(form, hidden=tuple(hidden))


def _over(call: exp.Expr, window: exp.Window | None) -> exp.Expr:
    """An aggregate call over the frame of a window, or as it is."""
    if window is None:
        return call
    # the function of the window alone is another one
    framed = window.copy()
    framed.set("this", call)
    return framed


def _parts_of(node: exp.Expr) -> Iterator[tuple[str, exp.Expr]]:
    """The arguments of a node that are nodes, by name."""
    for name, value in node.args.items():
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, exp.Expr):
                yield name, part


def _renamed(node: exp.Expr, names: Sequence[str]) -> list[str]:
    """The names of the columns of a table, after those that its alias gives."""
    alias = node.args.get("alias")
    given = [column.name for column in (alias.args.get("columns") or [])] if alias else []
    return [*given, *names[len(given) :]]
