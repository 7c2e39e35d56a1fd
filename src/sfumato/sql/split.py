# SPDX-License-Identifier: Apache-2.0
"""Splits a statement that is no single question: inner questions, and an outer statement over them.

An inner question is the largest sub-query (in FROM, in WITH, an arm of UNION, in place of a number)
that is a question by itself. A SELECT over rows of persons that computes more from its aggregates
than a question may is cut at its own level: its keys and aggregates are the inner question. The
outer statement reads the answers of the inner questions and nothing else.
"""

import datetime
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from sqlglot import exp

from sfumato.errors import SfumatoError, UnknownName, UnsupportedSql
from sfumato.metadata.dataset import Dataset
from sfumato.plan.question import Question
from sfumato.sql.bind import Answered, Parameters, scalar_queries, with_parameters, with_today
from sfumato.sql.declared_list import NOTE as DECLARED
from sfumato.sql.declared_list import declared_list, is_distinct, require_shown
from sfumato.sql.key_lists import declared_values, key_lists
from sfumato.sql.lower import question_of, stand_in, tree
from sfumato.sql.parse import parse_query
from sfumato.sql.reject import RAW_ROWS, refuse
from sfumato.sql.tables import name_as_declared, unit_columns
from sfumato.sql.with_clause import inlined

# The most inner questions of a statement.
MOST_INNER = 16
# Functions of a window that are no aggregates, although the parser has them as such.
_OF_ORDER = (exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue, exp.NthValue)
# What a SELECT may have that is cut at its own level.
_CUT = ("from_", "joins", "where")
_CLAUSES = frozenset(
    (
        "expressions",
        "group",
        "having",
        "qualify",
        "order",
        "windows",
        *_CUT,
        "limit",
        "offset",
        "distinct",
    )
)
# What ``name_of`` gives.
_OF_ANSWER = re.compile(r"answer \d+", re.IGNORECASE)
_KEPT = ("limit", "offset", "distinct")


@dataclass(frozen=True, slots=True)
class Inner:
    """A private question inside a larger statement, with its SQL text.

    ``asked_first`` counts its sub-queries in place of numbers and lists, each a question of its own.
    """

    text: str
    question: Question
    asked_first: int

    @property
    def is_open(self) -> bool:
        """Whether its groups are not public."""
        return self.question.raw.is_open


@dataclass(frozen=True, slots=True)
class Split:
    """A statement split into private questions (``inner``), and an outer statement over their
    answers.

    The outer statement names the answers' tables by ``name_of``.

    ``inner`` is empty if the statement reads declared values alone. ``notes`` are shown with the
    answer. ``is_cut``: it was cut at its own level, not in sub-queries. ``public`` are the public
    tables that the outer statement reads, by their declared names.
    """

    inner: tuple[Inner, ...]
    outer: exp.Query
    notes: tuple[str, ...] = ()
    is_cut: bool = False
    public: tuple[str, ...] = ()


def name_of(place: int) -> str:
    """Returns the table name, in the outer statement, of the answer of an inner question.

    No declared table that a statement can read has such a name: ``split`` refuses it.

    >>> name_of(0)
    'answer 0'
    """
    return f"answer {place}"


def _table(name: str) -> exp.Table:
    """The table of an answer as a node."""
    return exp.Table(this=exp.to_identifier(name, quoted=True))


def split(
    statement: str | exp.Select,
    dataset: Dataset,
    today: datetime.date,
    parameters: Parameters | None = None,
) -> Split | None:
    """Returns a statement's private questions, and the outer statement over their answers.

    ``today`` is the value of CURRENT_DATE.

    None if the statement is one question, or no part of it is one.

    Guarantees:
        the outer statement names no table but the answers and public tables

    Raises:
        UnsupportedSql, UnknownName, MissingDeclaration: a part reads rows of persons and is no
            question; it is the reason of that part.
    """
    try:
        # parameters and dates are found in any query
        query = cast(exp.Select, parse_query(statement))
    except UnsupportedSql:
        # what the whole was refused for says more than that it has too many parts
        return None
    query, notes = with_today(with_parameters(query, parameters), today)
    for table in query.find_all(exp.Table):
        if _OF_ANSWER.fullmatch(table.name):
            raise UnknownName(f"No table {table.name!r}.", allowed=", ".join(dataset.tables))
    splitter = _Splitter(dataset)
    try:
        outer = splitter.outer(query, {})
    except SfumatoError:
        if splitter.is_part_refused or splitter.inner:
            raise
        return None
    if splitter.is_whole or not (splitter.inner or splitter.has_lists):
        return None
    answers = {name_of(place) for place in range(len(splitter.inner))}
    if splitter.has_lists:
        require_shown(outer, answers)
        notes = (*notes, DECLARED)
    public = tuple(sorted({table.name for table in outer.find_all(exp.Table)} - answers))
    return Split(tuple(splitter.inner.values()), outer, notes, splitter.is_cut, public)


@dataclass(slots=True)
class _Splitter:
    """Splits one statement; ``inner`` collects the texts of its inner questions."""

    dataset: Dataset
    inner: dict[str, Inner] = field(default_factory=dict)
    is_part_refused: bool = False
    is_whole: bool = False
    is_cut: bool = False
    has_lists: bool = False
    _depth: int = 0
    _known: dict[str, exp.Query] = field(default_factory=dict)

    def outer(self, query: exp.Expr, known: Mapping[str, exp.Expr]) -> exp.Query:
        """Returns the outer form of a query; ``known`` are the queries that WITH names."""
        if isinstance(query, exp.Subquery):
            changed = query.copy()
            changed.set("this", self.outer(query.this, known))
            return changed
        if not isinstance(query, exp.Select | exp.SetOperation):
            raise refuse("This part of a statement", RAW_ROWS)
        full = inlined(query, known)
        if full.find(exp.Table) is None:
            return full
        # a name of WITH may stand many times for the same query
        text = full.sql("duckdb")
        if text not in self._known:
            self._known[text] = self._split(full)
        return self._known[text].copy()

    def _split(self, full: exp.Select | exp.SetOperation) -> exp.Query:
        """Returns the outer form of a query without WITH."""
        if isinstance(full, exp.SetOperation):
            self._depth += 1
            for side in ("this", "expression"):
                full.set(side, self.outer(full.args[side], {}))
            self._depth -= 1
            return full
        try:
            question = self._question(full)
        except SfumatoError as refused:
            refusal = refused
        else:
            self.is_whole = self._depth == 0
            return exp.select("*").from_(_table(self._name(question)))
        rest = self._cut(full, refusal)
        if rest is None:
            rest = self._below(full, refusal)
        names = {name_of(place) for place in range(len(self.inner))}
        for table in rest.find_all(exp.Table):
            if table.name not in names and not name_as_declared(table, self.dataset):
                raise refusal
        return rest

    def _question(self, select: exp.Select) -> Inner:
        """The question that a SELECT is.

        Raises:
            UnsupportedSql, UnknownName, MissingDeclaration: it is none.
        """
        text = select.sql("duckdb")
        whole = tree(text)
        lists = key_lists(whole)
        for wanted in lists:
            wanted.fill(declared_values(self._question(wanted.query).question, wanted.place))
        asked_first = len(lists) + len(scalar_queries(whole))

        def guess(query: exp.Select) -> Answered:
            return stand_in(question_of(query, self.dataset, scalars=guess))

        return Inner(text, question_of(whole, self.dataset, scalars=guess), asked_first)

    def _name(self, question: Inner) -> str:
        """The name of the answer of an inner question; equal questions are one."""
        self.inner.setdefault(question.text, question)
        if len(self.inner) > MOST_INNER:
            raise UnsupportedSql(
                f"More than {MOST_INNER} private questions in one statement.",
                remedy="Ask them apart; what was asked before is free.",
            )
        return name_of(list(self.inner).index(question.text))

    def _below(self, select: exp.Select, refusal: SfumatoError) -> exp.Select:
        """A SELECT with the outer form of each sub-query in it.

        Where a sub-query of one person's rows, or without an aggregate, is refused, the reason is
        that of the SELECT: it is no question of its own.
        """
        for node in _outermost(select):
            self._depth += 1
            try:
                node.replace(self.outer(node, {}))
            except SfumatoError:
                if self.is_part_refused or self._is_meant_as_question(node):
                    self.is_part_refused = True
                    raise
                raise refusal from None
            self._depth -= 1
        return select

    def _is_meant_as_question(self, query: exp.Expr) -> bool:
        """Whether a SELECT of a query has aggregates of the rows of many persons."""
        units = unit_columns(self.dataset)
        for select in query.find_all(exp.Select):
            keys = {key.name.lower() for key in _keys(select) or [] if isinstance(key, exp.Column)}
            if units.isdisjoint(keys) and any(_calls(part) for part in select.expressions):
                return True
        return False

    def _cut(self, select: exp.Select, refusal: SfumatoError) -> exp.Select | None:
        """A SELECT over rows, cut at its own level; None if its aggregates are no question."""
        keys = _keys(select)
        if keys is None or {name for name, value in select.args.items() if value} - _CLAUSES:
            return None
        parts = [*select.expressions, *_clauses(select)]
        calls: dict[str, exp.Expr] = {}
        for part in parts:
            for call in _calls(part):
                calls.setdefault(call.sql("duckdb"), call)
        if not calls and not keys and is_distinct(select):
            keys = [item.unalias() for item in select.expressions]
        if not calls and not keys:
            return None
        # in the order of their texts, so that another outer text has the same inner question
        aggregates = [calls[text] for text in sorted(calls)] or [exp.Count(this=exp.Star())]
        inner = exp.Select()
        for name in _CUT:
            if select.args.get(name):
                inner.set(name, _copied(select.args[name]))
        named = [exp.alias_(key.copy(), f"k{place}") for place, key in enumerate(keys)]
        named += [exp.alias_(call.copy(), f"v{place}") for place, call in enumerate(aggregates)]
        inner.set("expressions", named)
        if keys:
            inner.set("group", exp.Group(expressions=[key.copy() for key in keys]))
        try:
            question = self._question(inner)
        except SfumatoError:
            return None
        places = {key.sql("duckdb"): f"k{place}" for place, key in enumerate(keys)}
        places |= {call.sql("duckdb"): f"v{place}" for place, call in enumerate(aggregates)}
        rest = _over(select, places)
        if rest is None:
            return None
        source: exp.Expr | None = None
        if not calls and not question.is_open:
            # a number that is asked first has a stand-in here, by which a list cannot be tested
            source = None if question.asked_first else declared_list(question.question.raw)
            if source is None:
                # its rows would be the declared values, whatever the data and the tests
                return None
            self.has_lists = True
        self.is_cut |= self._depth == 0
        return self._below(rest.from_(source or _table(self._name(question))), refusal)


def _over(select: exp.Select, places: Mapping[str, str]) -> exp.Select | None:
    """What is left of a SELECT whose keys and aggregates are columns of an answer.

    None if it has other columns of rows.
    """
    sources = {node.alias_or_name.lower() for node in _sources(select)}

    def put(part: exp.Expr) -> exp.Expr:
        return _replaced(part.copy(), places, sources)

    outer = exp.Select()
    outer.set("expressions", [_named(item, put) for item in select.expressions])
    having = select.args.get("having")
    if having is not None:
        outer.set("where", exp.Where(this=put(having.this)))
    for clause in ("qualify", "order", "windows"):
        if select.args.get(clause):
            outer.set(clause, _each(select.args[clause], put))
    for clause in _KEPT:
        if select.args.get(clause):
            outer.set(clause, _copied(select.args[clause]))
    known = set(places.values())
    clauses = [clause for name, clause in _arguments(outer) if name != "expressions"]
    # an item may read the names of those before it
    for part in [*outer.expressions, *clauses]:
        if any(column.table or column.name.lower() not in known for column in _columns(part)):
            return None
        known.add(part.alias.lower())
    return outer


def _sources(select: exp.Select) -> list[exp.Expr]:
    """The tables and sub-queries of FROM."""
    clauses = [select.args.get("from_"), *(select.args.get("joins") or [])]
    return [clause.this for clause in clauses if clause is not None]


def _columns(node: exp.Expr) -> Iterator[exp.Column]:
    """The columns of a part of a SELECT, without those of its sub-queries."""
    if isinstance(node, exp.Column):
        yield node
    elif not isinstance(node, exp.Query):
        for part in node.iter_expressions():
            yield from _columns(part)


def _outermost(select: exp.Select) -> list[exp.Expr]:
    """The outermost queries inside a SELECT."""
    places: list[exp.Expr] = []
    waiting: list[exp.Expr] = list(select.iter_expressions())
    while waiting:
        node = waiting.pop(0)
        if not isinstance(node, exp.Subquery | exp.Select | exp.SetOperation):
            waiting = [*node.iter_expressions(), *waiting]
        elif node.find(exp.Table) is not None:
            places.append(node)
    return places


def _keys(select: exp.Select) -> list[exp.Expr] | None:
    """The keys of GROUP BY, without positions and aliases; None for other grouping."""
    items = select.expressions
    aliases = {item.alias.lower(): item.this for item in items if isinstance(item, exp.Alias)}
    group = select.args.get("group")
    if group is None:
        return []
    if group.args.get("all") is True:
        plain = [item.unalias() for item in items]
        return [item for item in plain if not _calls(item) and item.find(exp.Window) is None]
    if any(value for name, value in group.args.items() if name != "expressions"):
        return None
    keys = []
    for node in group.expressions:
        key = node
        if isinstance(node, exp.Literal) and not node.is_string:
            if not node.name.isdigit() or not 1 <= int(node.name) <= len(items):
                return None
            key = items[int(node.name) - 1].unalias()
        elif isinstance(node, exp.Column) and not node.table:
            key = aliases.get(node.name.lower(), node)
        keys.append(key)
    return keys


def _clauses(select: exp.Select) -> list[exp.Expr]:
    """The clauses that may have aggregates, besides the list of columns."""
    clauses = [select.args.get(name) for name in ("having", "qualify", "order")]
    return [clause for clause in clauses if clause is not None] + (select.args.get("windows") or [])


def _calls(node: exp.Expr) -> list[exp.Expr]:
    """The aggregate calls of rows in an expression, outermost first.

    The function of a window is none, but its arguments may be: SUM(COUNT(*)) OVER ().
    """
    if isinstance(node, exp.Query):
        return []
    if isinstance(node, exp.Window):
        function = node.this
        while isinstance(function, exp.Filter | exp.IgnoreNulls | exp.RespectNulls):
            function = function.this
        rest = [part for name, part in _arguments(node) if name != "this"]
        inside = [part for _, part in _arguments(function)]
        if isinstance(node.this, exp.Filter):
            rest.append(node.this.expression)
        return [call for part in (*inside, *rest) for call in _calls(part)]
    wrapped = isinstance(node, exp.Filter | exp.WithinGroup)
    called = node.this if wrapped else node
    if isinstance(called, exp.AggFunc) and not isinstance(called, _OF_ORDER):
        return [node]
    return [call for part in node.iter_expressions() for call in _calls(part)]


def _arguments(node: exp.Expr) -> Iterator[tuple[str, exp.Expr]]:
    """The arguments of a node that are nodes, by name."""
    for name, value in node.args.items():
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, exp.Expr):
                yield name, part


def _replaced(node: exp.Expr, places: Mapping[str, str], sources: Collection[str]) -> exp.Expr:
    """An expression with columns of the answer in place of keys and aggregates."""
    if isinstance(node, exp.Query):
        return node
    column = _column_of(node, places, sources)
    if column is not None:
        return exp.column(column)
    for name, value in list(node.args.items()):
        if isinstance(value, exp.Expr):
            node.set(name, _replaced(value, places, sources))
        elif isinstance(value, list):
            parts = []
            for part in value:
                is_node = isinstance(part, exp.Expr)
                parts.append(_replaced(part, places, sources) if is_node else part)
            node.set(name, parts)
    return node


def _column_of(node: exp.Expr, places: Mapping[str, str], sources: Collection[str]) -> str | None:
    """The column of the answer that a node is; a key counts with and without its table."""
    found = places.get(node.sql("duckdb")) if not isinstance(node, exp.Identifier) else None
    if found is not None or not isinstance(node, exp.Column):
        return found
    if node.table and node.table.lower() not in sources:
        return None
    own = node.name.lower()
    named = []
    for text, place in places.items():
        table, _, name = text.rpartition(".")
        if name.strip('"').lower() == own and not (table and node.table):
            named.append(place)
    return named[0] if len(named) == 1 else None


def _named(item: exp.Expr, put: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """A column of the outer statement under the name that it has in the statement."""
    if isinstance(item, exp.Alias):
        return exp.alias_(put(item.this), item.alias, quoted=True)
    name = item.name if isinstance(item, exp.Column) else item.sql("duckdb")
    return exp.alias_(put(item), name, quoted=True)


def _each(value: object, put: Callable[[exp.Expr], exp.Expr]) -> object:
    """A clause, or a list of clauses, with each part replaced."""
    if isinstance(value, list):
        return [put(part) for part in value]
    assert isinstance(value, exp.Expr), "a clause is a node or a list of nodes"
    return put(value)


def _copied(value: exp.Expr | Sequence[exp.Expr]) -> object:
    """A copy of a clause, or of a list of clauses."""
    return value.copy() if isinstance(value, exp.Expr) else [part.copy() for part in value]
