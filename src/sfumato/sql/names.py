# SPDX-License-Identifier: Apache-2.0
"""Name resolution: the tables and sub-queries of FROM, and their columns."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from sfumato.errors import UnknownName, UnsupportedSql
from sfumato.metadata.column import Column
from sfumato.metadata.dataset import Dataset
from sfumato.plan.scalar import Field, Scalar, children
from sfumato.sql.reject import reject, require_only
from sfumato.sql.typed import Label, Person, Typed, Words

# The most tables of a statement: sub-queries that each read the one below twice would double them
# at every level.
_MOST_TABLES = 50


@dataclass(slots=True)
class Context:
    """The state shared by all parts of one SQL statement while it is translated into a plan.

    ``dataset`` has the declarations; ``notes`` and ``bias`` are lines for the reader of the answer.
    ``answered`` has the tests that contain the answer of a scalar sub-query, ``units_read`` the
    unit columns that a test reads, by name.
    """

    dataset: Dataset
    notes: list[str] = field(default_factory=list)
    bias: list[str] = field(default_factory=list)
    units_read: dict[str, Column] = field(default_factory=dict)
    answered: set[Scalar] = field(default_factory=set)
    _taken: set[str] = field(default_factory=set)
    _counts: dict[str, int] = field(default_factory=dict)
    _tables: int = 0

    def note(self, words: str) -> None:
        """Adds a sentence to the notes shown with the answer, unless it is there already."""
        if words not in self.notes:
            self.notes.append(words)

    def prefix(self, table: str, columns: Iterable[str]) -> str:
        """Returns a prefix that makes a table's column names unique; "" for the first table."""
        self._tables += 1
        if self._tables > _MOST_TABLES:
            raise UnsupportedSql(
                f"More than {_MOST_TABLES} tables, those of repeated sub-queries included.",
                remedy="Ask less at once.",
            )
        names = [*columns, ""]
        candidates = [] if self._taken else [""]
        candidates.append(f"{table}.")
        candidates += [f"{table}{count}." for count in range(2, _MOST_TABLES + 2)]
        for prefix in candidates:
            prefixed = [prefix + name for name in names]
            if self._taken.isdisjoint(prefixed):
                self._taken.update(prefixed)
                return prefix
        raise AssertionError("there are more candidates than tables")

    def name(self, wanted: str) -> str:
        """Returns a unique name for a computed column: ``wanted``, with a number added if
        necessary.
        """
        count = self._counts.get(wanted, 1)
        chosen = wanted
        while chosen in self._taken:
            count += 1
            chosen = f"{wanted}{count}"
        self._counts[wanted] = count
        self._taken.add(chosen)
        return chosen


@dataclass(frozen=True, slots=True)
class Link:
    """A declared link (``via=``): the column ``name`` refers to the ``key`` of ``table``.

    The unit of a row is that of the linked row. ``value`` is the value that a join reads.
    """

    name: str
    table: str
    key: str
    value: Typed


@dataclass(frozen=True, slots=True)
class Source:
    """A table or sub-query in FROM, and its columns.

    ``columns`` are its columns by lower-case name, ``shown`` their names as written. ``parts`` maps
    each column that identifies the unit to its position among those that identify it together.
    ``known`` describes the source in messages. ``table`` is the declared table, and ``link`` the
    link to the table with its units; both are None for a sub-query.
    """

    name: str
    columns: Mapping[str, Typed]
    shown: tuple[str, ...]
    parts: Mapping[str, int]
    known: str
    table: str | None = None
    link: Link | None = None

    def has(self, name: str) -> bool:
        """Whether the source has a column of this name."""
        return name.lower() in self.columns or name.lower() in self.parts


class Scope:
    """The tables and columns that can be named in one SELECT.

    ``width`` is the number of columns that identify a unit together.
    """

    def __init__(
        self,
        context: Context,
        sources: Sequence[Source],
        width: int,
    ) -> None:
        self._context = context
        self.sources = tuple(sources)
        self.width = width

    def note(self, words: str) -> None:
        """Adds a sentence to the notes shown with the answer."""
        self._context.note(words)

    def answered(self, test: Scalar) -> None:
        """Records that a test contains the answer of a scalar sub-query."""
        self._context.answered.add(test)

    def rounded(self, words: str) -> None:
        """Adds a sentence on a rounded number in a test to the answer's errors that no interval
        covers.

        A sentence already there is not repeated.
        """
        if words not in self._context.bias:
            self._context.bias.append(words)

    def written(self, tests: Iterable[Scalar]) -> tuple[Scalar, ...]:
        """Returns the tests whose constants are all written in the statement.

        The others contain the answer of a scalar sub-query.
        """
        answered = self._context.answered
        if not answered:
            return tuple(tests)
        return tuple(test for test in tests if answered.isdisjoint(_subexpressions(test)))

    def column(self, node: exp.Column) -> Typed:
        """Returns the typed value of the column that a node names.

        Raises:
            UnknownName: no table has the column, or several have it.
        """
        owners = self._owners(node)
        if not owners:
            raise self._unknown_column(node)
        name = node.name.lower()
        if len(owners) > 1 and name not in owners[0].parts:
            names = ", ".join(f"{owner.name}.{node.name}" for owner in owners)
            raise UnknownName(f"Several tables have a column {node.name!r}.", allowed=names)
        typed = owners[0].columns.get(name)
        if typed is None:
            return Person(node.name, None)
        return typed

    def reads(self, person: Person) -> None:
        """Makes the plan's table scan also read a column that identifies the unit, for a test of
        it.
        """
        if isinstance(person.reading, Words):
            leaf = person.reading.expression
            assert isinstance(leaf, Field), "a unit's own column is read as it is"
            self._context.units_read[leaf.column.name] = leaf.column

    def part(self, node: exp.Expr | None) -> int | None:
        """Returns a column's position among those that together identify the unit; None for
        others.
        """
        while isinstance(node, exp.Paren):
            node = node.this
        if not isinstance(node, exp.Column):
            return None
        name = node.name.lower()
        for owner in self._owners(node):
            if name in owner.parts:
                return owner.parts[name]
        return None

    def is_unit(self, nodes: Iterable[exp.Expr]) -> bool:
        """Whether the columns include all those that together identify the unit."""
        if self.width == 0:
            return False
        parts = {self.part(node) for node in nodes}
        return parts >= set(range(self.width))

    def unit_name(self) -> str:
        """Returns the column name that identifies the unit in this statement, for messages."""
        for source in self.sources:
            for name in source.parts:
                return name
        return "unit"

    def owns(self, node: exp.Expr) -> bool:
        """Whether all columns of a SQL expression are in this scope."""
        return all(self._owners(column) for column in node.find_all(exp.Column))

    def _owners(self, node: exp.Column) -> list[Source]:
        """Returns the sources that have a column; the one that it identifies the unit of first."""
        require_only(node, "this", "table", "db", "catalog")
        if isinstance(node.this, exp.Star):
            raise reject(node.this)
        owners = [source for source in self._sources_named(node) if source.has(node.name)]
        name = node.name.lower()
        # in tables joined on the unit, its bare name is the column of the table whose rows are kept
        return sorted(owners, key=lambda source: name not in source.parts)

    def _sources_named(self, node: exp.Column) -> list[Source]:
        """Returns the sources that the qualifier of a column may mean; all if it has none."""
        prefix = node.table.lower()
        return [source for source in self.sources if prefix in ("", source.name.lower())]

    def _unknown_column(self, node: exp.Column) -> UnknownName:
        """Returns the refusal of a column that no source has."""
        named = self._sources_named(node)
        if node.table and not named:
            return UnknownName(
                f"No table {node.table!r} in this question.",
                allowed=", ".join(source.name for source in self.sources),
            )
        allowed = [column for source in named for column in source.shown]
        if len(named) == 1:
            problem = f"{named[0].known} has no declared column {node.name!r}."
        else:
            problem = f"No table here has a declared column {node.name!r}."
        return UnknownName(
            problem,
            allowed=", ".join(allowed) or "none: no column is declared",
            remedy=_column_hint(node, named),
        )


def _column_hint(node: exp.Column, named: Sequence[Source]) -> str:
    """Returns the hint for a column that none of some sources has."""
    written: dict[str, str] = {}
    for source in named:
        written |= {name.lower(): name for name in (*source.parts, *source.shown)}
    for name in _hyphenated_names(node):
        if name in written:
            return (
                f'A name with a hyphen stands in double quotes: "{written[name]}". '
                "Without them it is a subtraction."
            )
    if isinstance(node.this, exp.Identifier) and node.this.quoted:
        text = exp.Literal.string(node.name).sql(dialect="duckdb")
        return f"A text stands in single quotes: {text}. Double quotes name a column."
    for column, word in _category_values(named):
        if node.name.lower() == word.lower() and not node.table:
            text = exp.Literal.string(word).sql(dialect="duckdb")
            return f"It is a value of {column!r}. A text stands in single quotes: {text}."
    return "Use one of these, or declare the column in columns= with its values or bounds."


def _category_values(sources: Sequence[Source]) -> Iterator[tuple[str, str]]:
    """Yields each column of declared strings with each of its labels."""
    for source in sources:
        for name in source.shown:
            column = source.columns.get(name.lower())
            if isinstance(column, Label):
                for word in column.labels:
                    yield name, word


def _hyphenated_names(node: exp.Column) -> Iterator[str]:
    """Yields the names that a chain of subtractions like a-b-c spells, in lower case.

    The longest come first.
    """
    top: exp.Expr = node
    while isinstance(top.parent, exp.Sub):
        top = top.parent
    terms: list[exp.Expr] = []
    while isinstance(top, exp.Sub):
        terms.insert(0, top.expression)
        top = top.this
    while isinstance(top, exp.Binary):
        # the first word of 1 + a - b is a
        top = top.expression
    words = []
    for term in (top, *terms):
        is_word = isinstance(term, exp.Column | exp.Literal)
        words.append(term.name.lower() if is_word else "")
    for size in range(len(words), 1, -1):
        for start in range(len(words) - size + 1):
            yield "-".join(words[start : start + size])


def _subexpressions(expression: Scalar) -> Iterator[Scalar]:
    """Yields an expression and all its sub-expressions."""
    yield expression
    for child in children(expression):
        yield from _subexpressions(child)
