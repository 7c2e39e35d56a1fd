# SPDX-License-Identifier: Apache-2.0
"""What the names of a statement mean: tables and sub-queries in FROM, and their columns."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from sfumato.errors import UnknownName, UnsupportedSql
from sfumato.metadata.column import Column
from sfumato.metadata.dataset import Dataset
from sfumato.plan.scalar import Field, Scalar, children
from sfumato.sql.reject import reject, require_only
from sfumato.sql.typed import Person, Typed, Words

# A sub-query that each of several sub-queries uses twice doubles at every level.
_MOST_TABLES = 50


@dataclass(slots=True)
class Context:
    """What the whole statement shares: the declarations, the names given so far, the notes.

    ``answered``: the tests in which the answer of a sub-query stands. ``bias``: what a reader has to
    know of the tests that its answer does not hold.
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
        """Tells the reader of the answer something, once."""
        if words not in self.notes:
            self.notes.append(words)

    def prefix(self, table: str, columns: Iterable[str]) -> str:
        """A prefix under which the columns of another table are not yet taken; the first needs none."""
        self._tables += 1
        if self._tables > _MOST_TABLES:
            raise UnsupportedSql(
                f"More than {_MOST_TABLES} tables, those of repeated sub-queries included.",
                remedy="Ask less at once.",
            )
        names = [*columns, ""]
        candidates = [""] if not self._taken else []
        candidates += [f"{table}.", *(f"{table}{count}." for count in range(2, _MOST_TABLES + 2))]
        chosen = next(
            each
            for each in candidates
            if not self._taken.intersection(each + name for name in names)
        )
        self._taken.update(chosen + name for name in names)
        return chosen

    def name(self, wanted: str) -> str:
        """A name for a computed column that is not yet taken."""
        count, chosen = self._counts.get(wanted, 1), wanted
        while chosen in self._taken:
            count += 1
            chosen = f"{wanted}{count}"
        self._counts[wanted] = count
        self._taken.add(chosen)
        return chosen


@dataclass(frozen=True, slots=True)
class Source:
    """One table or sub-query of FROM: its columns by lower-case name, and those that name its unit.

    ``parts``: for each name of the unit its place among those that name it together.
    """

    name: str
    columns: Mapping[str, Typed]
    shown: tuple[str, ...]
    parts: Mapping[str, int]
    known: str

    def has(self, name: str) -> bool:
        """Whether a name belongs to it."""
        return name.lower() in self.columns or name.lower() in self.parts


class Scope:
    """The names that the expressions of one SELECT can use."""

    def __init__(self, context: Context, sources: Sequence[Source], width: int) -> None:
        self._context = context
        self.sources = tuple(sources)
        self.width = width

    def note(self, words: str) -> None:
        """Tells the reader of the answer something."""
        self._context.note(words)

    def answered(self, test: Scalar) -> None:
        """Notes that the answer of a sub-query stands in a test."""
        self._context.answered.add(test)

    def rounded(self, words: str) -> None:
        """Tells the reader of the answer that a test is of a rounded number, once."""
        if words not in self._context.bias:
            self._context.bias.append(words)

    def written(self, tests: Iterable[Scalar]) -> tuple[Scalar, ...]:
        """Those of some tests that the statement itself decides, without the answer of a sub-query."""
        known = self._context.answered
        return tuple(each for each in tests if not known or known.isdisjoint(_inside(each)))

    def column(self, node: exp.Column) -> Typed:
        """What a column means; lists the declared ones if there is none."""
        found = self._owners(node)
        if not found:
            raise self._unknown(node)
        if len(found) > 1 and node.name.lower() not in found[0].parts:
            names = ", ".join(f"{each.name}.{node.name}" for each in found)
            raise UnknownName(f"Several tables have a column {node.name!r}.", allowed=names)
        typed = found[0].columns.get(node.name.lower())
        return Person(node.name, None) if typed is None else typed

    def reads(self, person: Person) -> None:
        """Lets a test see the unit's own column, which is not read else."""
        if isinstance(person.reading, Words):
            leaf = person.reading.expression
            assert isinstance(leaf, Field), "a unit's own column is read as it is"
            self._context.units_read[leaf.column.name] = leaf.column

    def part(self, node: exp.Expr | None) -> int | None:
        """The place of a column among those that name the unit; None if it is none of them."""
        while isinstance(node, exp.Paren):
            node = node.this
        if not isinstance(node, exp.Column):
            return None
        found = [
            each.parts[node.name.lower()]
            for each in self._owners(node)
            if node.name.lower() in each.parts
        ]
        return found[0] if found else None

    def is_unit(self, nodes: Iterable[exp.Expr]) -> bool:
        """Whether columns name the unit together."""
        return self.width > 0 and {self.part(each) for each in nodes} >= set(range(self.width))

    def unit_name(self) -> str:
        """What the analyst calls the unit."""
        names = [name for each in self.sources for name in each.parts]
        return names[0] if names else "unit"

    def owns(self, node: exp.Expr) -> bool:
        """Whether every column of an expression is one of this scope."""
        return all(self._owners(each) for each in node.find_all(exp.Column))

    def _owners(self, node: exp.Column) -> list[Source]:
        require_only(node, "this", "table")
        if isinstance(node.this, exp.Star):
            raise reject(node.this)
        prefix = node.table.lower()
        named = [
            each
            for each in self.sources
            if prefix in ("", each.name.lower()) and each.has(node.name)
        ]
        # of tables joined on the unit, the name of the unit alone is that of the one whose rows stay
        return sorted(named, key=lambda each: node.name.lower() not in each.parts)

    def _unknown(self, node: exp.Column) -> UnknownName:
        prefix = node.table.lower()
        if prefix and prefix not in [each.name.lower() for each in self.sources]:
            return UnknownName(
                f"No table {node.table!r} in this question.",
                allowed=", ".join(each.name for each in self.sources),
            )
        named = [each for each in self.sources if prefix in ("", each.name.lower())]
        allowed = [column for each in named for column in each.shown]
        remedy = "Use one of these, or declare the column in columns= with its values or bounds."
        written = {name.lower(): name for each in named for name in (*each.parts, *each.shown)}
        meant = next((written[each] for each in _hyphenated(node) if each in written), None)
        if meant is not None:
            remedy = f'A name with a hyphen stands in double quotes: "{meant}". Without them it is a subtraction.'
        elif isinstance(node.this, exp.Identifier) and node.this.quoted:
            text = exp.Literal.string(node.name).sql(dialect="duckdb")
            remedy = f"A text stands in single quotes: {text}. Double quotes name a column."
        where = named[0].known if len(named) == 1 else "No table here"
        has = "has no declared column" if len(named) == 1 else "has a declared column"
        return UnknownName(
            f"{where} {has} {node.name!r}.",
            allowed=", ".join(allowed) or "none: no column is declared",
            remedy=remedy,
        )


def _hyphenated(node: exp.Column) -> Iterator[str]:
    """The names that subtractions around a column spell, a-b-c: the longest first, in small letters."""
    top: exp.Expr = node
    while isinstance(top.parent, exp.Sub):
        top = top.parent
    terms: list[exp.Expr] = []
    while isinstance(top, exp.Sub):
        terms.insert(0, top.expression)
        top = top.this
    while isinstance(top, exp.Binary):
        # of 1 + a - b the first word is a
        top = top.expression
    words = [
        each.name.lower() if isinstance(each, exp.Column | exp.Literal) else ""
        for each in (top, *terms)
    ]
    for size in range(len(words), 1, -1):
        for start in range(len(words) - size + 1):
            yield "-".join(words[start : start + size])


def _inside(expression: Scalar) -> Iterator[Scalar]:
    """An expression and all that it is made of."""
    yield expression
    for each in children(expression):
        yield from _inside(each)
