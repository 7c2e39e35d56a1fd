# SPDX-License-Identifier: Apache-2.0
"""Plans the rows of a SELECT for learning: bounded rows, features and label; reads declarations
only.

Every fit and every score begins here.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain

from sfumato.errors import MissingDeclaration, WrongUse, shown
from sfumato.learning.bag import Bag
from sfumato.learning.examples import Label
from sfumato.learning.features import Bagged, Feature, Features
from sfumato.learning.frames import FrameColumn
from sfumato.metadata.column import Array, Boolean, Category, ColumnType, Integer, Real, Text
from sfumato.metadata.dataset import Dataset
from sfumato.plan.relation import Scan
from sfumato.plan.rows import BoundedRows
from sfumato.plan.scope import nodes
from sfumato.plan.value import Value
from sfumato.query.pipeline import compile_rows
from sfumato.sql.row_list import place_of, row_list


@dataclass(frozen=True, slots=True)
class Coded:
    """One feature of the rows: its name, its type, and the index of its code in a row."""

    name: str
    type: ColumnType
    place: int


@dataclass(frozen=True, slots=True)
class Examples:
    """The plan of the rows of a SELECT as training examples: one column is the label, the others
    are features.

    The column at ``place`` is the label, all others are features. ``place`` is None for models
    without a label (``KMeans``, ``PCA``). An array column gives one feature per number. ``bag`` says
    how texts are read: the codes of their bags are after those of all other columns.
    """

    plan: BoundedRows
    place: int | None
    bag: Bag | None = None

    @classmethod
    def of(
        cls,
        dataset: Dataset,
        statement: str,
        label: str | None,
        bag: Bag | None = None,
    ) -> "Examples":
        """Returns the training examples that a SELECT over a dataset reads; derived from
        declarations only, without reading data.

        Without ``bag`` no text is read.

        Raises:
            UnknownName: the rows have no such label.
            WrongUse: a label that is no declared class and no number.
            MissingDeclaration: a column is a text, which is not read, or not split into tokens.
            Others as ``row_list``.
        """
        rows = row_list(statement, dataset)
        for value in rows.values:
            _require_read(value, bag)
        if label is None:
            return cls(compile_rows(rows, dataset), None, bag)
        place = place_of(rows, label)
        kind = rows.values[place].type
        if not isinstance(kind, Category | Boolean | Integer | Real):
            raise WrongUse(
                f"label={label!r}, a {type(kind).__name__}.",
                allowed="a Category, a Boolean, an Integer or a Real",
            )
        return cls(compile_rows(rows, dataset), place, bag)

    @property
    def values(self) -> tuple[Value, ...]:
        """The columns that are features, in the order of the SELECT."""
        values = enumerate(self.plan.rows.values)
        return tuple(value for place, value in values if place != self.place)

    @property
    def labelled(self) -> Value:
        """The column of the SELECT that is the label.

        Raises:
            WrongUse: rows without a label.
        """
        if self.place is None:
            raise WrongUse(
                "A fit without a label.", remedy='label="income": the column that is predicted.'
            )
        return self.plan.rows.values[self.place]

    @property
    def about(self) -> str:
        """A description of the examples for the ledger: label and tables, such as ``income from
        people``.
        """
        read = {node.table for node in nodes(self.plan.rows.relation) if isinstance(node, Scan)}
        tables = ", ".join(sorted(read))
        if self.place is None:
            return f"rows from {tables}"
        return f"{self.labelled.name} from {tables}"

    def require_unlabelled(self, recipe: str) -> None:
        """Raises WrongUse if the examples have a label; ``recipe`` is the name of a recipe without
        labels.
        """
        if self.place is not None:
            raise WrongUse(
                f"{recipe} with label={self.labelled.name!r}.",
                remedy=f"{recipe} predicts no column: leave label= out.",
            )

    @property
    def coded(self) -> tuple[Coded, ...]:
        """The features in order, each with its name, its column type, and the index of its (first)
        code in a row.
        """
        rows = self.plan.rows
        features: list[Coded] = []
        after = sum(rows.widths)
        for place, (value, start) in enumerate(zip(rows.values, rows.starts, strict=True)):
            if place == self.place:
                continue
            if isinstance(value.type, Array):
                features += _numbers(value.name, value.type, start)
            elif isinstance(value.type, Text):
                features.append(Coded(value.name, value.type, after))
                after += self._bag.most
            else:
                features.append(Coded(value.name, value.type, start))
        return tuple(features)

    @property
    def places(self) -> tuple[int, ...]:
        """The indices of all codes that features read, among the codes of a row followed by those
        of its bags of words.
        """
        return tuple(chain.from_iterable(map(self.places_of, self.coded)))

    def places_of(self, feature: Coded) -> range:
        """Returns the indices, among the codes of a row, that one feature reads: several for a
        text, else one.
        """
        width = self._bag.most if isinstance(feature.type, Text) else 1
        return range(feature.place, feature.place + width)

    @property
    def _bag(self) -> Bag:
        assert self.bag is not None, "checked by of"
        return self.bag

    @property
    def label(self) -> Label:
        """The index of the label's code in a row, and the label's range of codes."""
        kind = self.labelled.type
        assert isinstance(kind, Category | Boolean | Integer | Real), "checked by of"
        assert self.place is not None, "it has a label"
        return Label(self.plan.rows.starts[self.place], kind.lower_code, kind.upper_code)

    @property
    def classes(self) -> tuple[str, ...]:
        """The classes of the label; empty if it is a number."""
        return FrameColumn.of(self.labelled).texts

    @property
    def bounds(self) -> tuple[float, float]:
        """The values at both ends of the range of a numeric label."""
        label = self.label
        step = FrameColumn.of(self.labelled).step
        return float(label.lower * step), float(label.upper * step)

    def features(self, make: Callable[[str, ColumnType], Feature]) -> Features:
        """Returns the encoder of all features; ``make`` builds the encoding of a column from its
        name and declared type.
        """

        def feature(coded: Coded) -> Feature:
            if isinstance(coded.type, Text):
                return Bagged(coded.name, self._bag)
            return make(coded.name, coded.type)

        return Features(tuple(map(feature, self.coded)))

    @property
    def columns(self) -> tuple[FrameColumn, ...]:
        """Descriptions of the feature columns, by which a fitted model reads them from a data
        frame.
        """
        return tuple(FrameColumn.of(value, self.bag) for value in self.values)


def _require_read(value: Value, bag: Bag | None) -> None:
    """Raises MissingDeclaration if a value is a text that is not read, or not split into tokens."""
    if not isinstance(value.type, Text) or (value.type.tokens is not None and bag is not None):
        return
    remedy = "Declare it as sf.Text(tokens=sf.Tokens()), or leave it out."
    if value.type.tokens is not None:
        remedy = "Take one of these recipes, or leave the column out."
    raise MissingDeclaration(
        f"{shown(value.name)} is a text: its values are not declared, so they have no codes.",
        allowed="a text with tokens= in LogisticRegression, Additive and torch.Network; other "
        "recipes read values with codes",
        remedy=remedy,
    )


def _numbers(name: str, kind: Array, start: int) -> list[Coded]:
    """Returns one feature per number of an array column, whose first code is at index ``start``."""
    places = range(kind.length)
    return [Coded(f"{name}[{place}]", kind.element, start + place) for place in places]
