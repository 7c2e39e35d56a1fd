# SPDX-License-Identifier: Apache-2.0
"""The first steps of a fit: release frequent strings of text columns, and bins at quantiles.

They are part of the same charge. Their results are the axes of all later counts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from sfumato.errors import MissingDeclaration, WrongUse, shown
from sfumato.mechanisms.additive import AdditiveMechanism
from sfumato.mechanisms.threshold import ThresholdMechanism, threshold_gaussian
from sfumato.metadata.column import Category, Column
from sfumato.metadata.dataset import Dataset
from sfumato.plan.aggregate import CountUnits
from sfumato.plan.owner import owner_of
from sfumato.plan.relation import Scan
from sfumato.plan.stages import Bounded, Raw
from sfumato.plan.value import GroupKey, Value
from sfumato.privacy.distance import Distance, Norm
from sfumato.privacy.event import Event, Repeated
from sfumato.query.allowance import Allowance
from sfumato.query.cells import Units
from sfumato.query.curator import Curator
from sfumato.query.pipeline import compile_plan
from sfumato.synthetic.constraints import Constraint
from sfumato.synthetic.counts import Plan
from sfumato.synthetic.public import Public
from sfumato.synthetic.quantiles import QuantileTree
from sfumato.synthetic.schema import DEFAULT_BINS, Axis, Quantiles, Schema, TextAxis

# The most released values of a text, and the most characters of one.
MOST_KEYS, LONGEST_KEY = 1000, 200
# A column with more values than have cells of their own has bins at so many quantiles; with more
# than these, at fewer: unless other bins are declared.
WIDE, DEFAULT_QUANTILES = 4096, 32
# The share of the cost of each column that is opened, and the most of all of them.
_EACH, _MOST = Fraction(1, 25), Fraction(1, 5)


def quantiles_of(
    schema: Schema,
    bins: Mapping[str, Any],
    constraints: Sequence[Constraint | Public],
) -> dict[str, int]:
    """Returns the columns whose bins are at quantiles, with the number of bins.

    By default these are the columns with more than 256 values, unless a constraint tests them: then
    their bins must be public.

    Raises:
        WrongUse: a constraint tests a column for which quantiles are asked.
    """
    tested = {name for each in constraints for name in each.columns}
    bins_by_column = {}
    for axis in schema.axes:
        asked = bins.get(axis.name)
        if isinstance(asked, Quantiles):
            bins_by_column[axis.name] = asked.bins
        elif asked is None and axis.name not in tested and axis.starts is not None:
            bins_by_column[axis.name] = DEFAULT_QUANTILES if axis.kind.size > WIDE else DEFAULT_BINS
    both = [name for name in tested if isinstance(bins.get(name), Quantiles)]
    if both:
        raise WrongUse(
            f"A constraint on {shown(min(both))}, whose bins are found by the charge.",
            remedy="Declare bins= that begin where the constraint changes.",
        )
    return bins_by_column


@dataclass(frozen=True, slots=True)
class Opening:
    """The plan of a fit's first charged steps, which choose the cells of some columns: a private
    key selection for each text column, a noisy quantile tree for each binned one.

    ``questions`` count the units of each string of a text, in the order of ``texts``; ``trees``
    find the bins of columns. ``each`` is the cost of one column, ``delta`` that of one text.
    """

    texts: tuple[str, ...]
    questions: tuple[Bounded, ...]
    trees: tuple[QuantileTree, ...]
    each: Allowance
    delta: Fraction

    @classmethod
    def of(
        cls,
        dataset: Dataset,
        schema: Schema,
        quantiles: Mapping[str, int],
        allowed: Allowance,
    ) -> "Opening | None":
        """Returns the first steps of a table's fit; None if it has neither text columns nor
        quantile bins.

        Raises:
            MissingDeclaration: there are texts, but no delta.
        """
        (found,) = cls.of_each(dataset, [schema], [quantiles], allowed)
        return found

    @classmethod
    def of_each(
        cls,
        dataset: Dataset,
        schemas: Sequence[Schema],
        quantiles: Sequence[Mapping[str, int]],
        allowed: Allowance,
    ) -> "tuple[Opening | None, ...]":
        """Returns the first steps (``Opening`` or None) of each of several tables, whose columns
        share the cost and the delta.

        Raises:
            MissingDeclaration: there are texts, but no delta.
        """
        texts = sum(len(_text_names(schema)) for schema in schemas)
        opened = texts + sum(map(len, quantiles))
        if texts and allowed.delta is None:
            raise MissingDeclaration(
                "texts= without a delta: a value that one person has is released with some chance.",
                allowed="epsilon= with delta=, or rho= with delta=",
                remedy='delta="1e-9"',
            )
        share = min(_EACH, _MOST / max(opened, 1))
        allowance_each = replace(allowed, amount=allowed.amount * share, delta=None)
        delta = (allowed.delta or Fraction(0)) / max(texts, 1)
        openings: list[Opening | None] = []
        for schema, cut in zip(schemas, quantiles, strict=True):
            names = _text_names(schema)
            questions = counted_texts(dataset, schema, allowed.norm)
            one = cls(names, questions, _quantile_trees(schema, cut), allowance_each, delta)
            openings.append(one if names or cut else None)
        return tuple(openings)

    @classmethod
    def remade(
        cls,
        dataset: Dataset,
        schema: Schema,
        norm: Norm,
        stored: Mapping[str, Any],
    ) -> "Opening":
        """Rebuilds an ``Opening`` from the stored JSON that ``told`` returned."""
        trees = _quantile_trees(schema, stored["quantiles"])
        allowance = Allowance(norm, Fraction(stored["each"]))
        questions = counted_texts(dataset, schema, norm)
        return cls(_text_names(schema), questions, trees, allowance, Fraction(stored["delta"]))

    def told(
        self,
        schema: Schema,
    ) -> dict[str, Any]:
        """Returns these steps as JSON for the ledger; texts are in the order of their columns."""
        rests = {}
        for one in schema.axes:
            if isinstance(one, TextAxis):
                rests[one.name] = one.rest
        return {
            "texts": rests,
            "quantiles": {tree.column.name: tree.bins for tree in self.trees},
            "each": str(self.each.amount),
            "delta": str(self.delta),
        }

    def left(
        self,
        allowed: Allowance,
    ) -> Allowance:
        """Returns the cost that remains, of a fit's whole cost ``allowed``, for the measurements
        after these steps.
        """
        spent = self.each.amount * (len(self.texts) + len(self.trees))
        return replace(allowed, amount=allowed.amount - spent)

    def events(
        self,
        plan: Plan,
    ) -> tuple[Event, ...]:
        """Returns the privacy events of the steps, in order."""
        steps: list[Event] = []
        for question in self.questions:
            counted = Units(question, 0)
            steps.append(self.threshold(counted).event(counted.distance(Norm.LINF)))
        for tree in self.trees:
            moved, noise = self._noise_of_level(plan, tree)
            steps.append(Repeated(noise.event(moved), tree.levels))
        return tuple(steps)

    def threshold(
        self,
        counted: Units,
    ) -> ThresholdMechanism:
        """Returns the mechanism of private key selection for the strings of a text column, by their
        counts of units.
        """
        relation = counted.distance(Norm.LINF).relation
        return threshold_gaussian(counted.groups, self.each.amount, self.delta, relation)

    def _noise_of_level(
        self,
        plan: Plan,
        tree: QuantileTree,
    ) -> tuple[Distance, AdditiveMechanism]:
        """Returns the distance and the mechanism of the counts of one tree level."""
        moved = plan.l1 if self.each.norm is Norm.L1 else plan.l2
        (share,) = {*self.each.shares(tree.levels)}
        return moved, self.each.noise(moved, share)

    def released(
        self,
        curator: Curator,
        schema: Schema,
    ) -> dict[str, Any]:
        """Runs these steps through the curator; returns the released strings and bins as JSON."""
        keys: dict[str, list[str]] = {}
        for name, question in zip(self.texts, self.questions, strict=True):
            counted = Units(question, 0)
            keys[name] = _most_frequent_values(curator.threshold(counted, self.threshold(counted)))
        starts: dict[str, list[int]] = {}
        fine = {tree.column.name: tree.fine for tree in self.trees}
        plan = schema.with_axes([fine.get(one.name, one) for one in schema.axes]).plan
        for tree in self.trees:
            _, noise = self._noise_of_level(plan, tree)
            starts[tree.column.name] = list(tree.found(curator, plan, noise))
        return {"keys": keys, "starts": starts}


def _text_names(
    schema: Schema,
) -> tuple[str, ...]:
    """Returns the names of the text columns, in the order of the schema."""
    return tuple(one.name for one in schema.axes if isinstance(one, TextAxis))


def _quantile_trees(
    schema: Schema,
    quantiles: Mapping[str, int],
) -> tuple[QuantileTree, ...]:
    """Returns the quantile trees of columns, in the order of the schema."""
    found = []
    for one in schema.axes:
        if one.name in quantiles:
            found.append(QuantileTree(one.column, quantiles[one.name]))
    return tuple(found)


def opened(
    schema: Schema,
    released: Mapping[str, Any],
) -> Schema:
    """Returns the schema with cells from the first steps of a fit: the ``released`` strings of text
    columns and bins of binned ones.
    """
    axes: list[Axis] = []
    for axis in schema.axes:
        if isinstance(axis, TextAxis):
            axes.append(_with_keys(axis, released["keys"][axis.name]))
        elif axis.name in released["starts"]:
            axes.append(Axis(axis.column, tuple(released["starts"][axis.name])))
        else:
            axes.append(axis)
    return schema.with_axes(axes)


def _with_keys(
    axis: TextAxis,
    keys: Sequence[str],
) -> TextAxis:
    """Returns the axis of a text with its released strings."""
    kind = axis.column.type
    assert isinstance(kind, Category), "a text has released values"
    (rest,) = kind.values[-1:]
    values = sorted(set(keys) - {rest, *(kind.missing or ())})
    return TextAxis(Column(axis.name, Category(*values, rest, missing=kind.missing)))


def _most_frequent_values(
    shown: Mapping[tuple[int | str | None, ...], int],
) -> list[str]:
    """Returns the strings with the largest noisy counts, as many as a column can have.

    Strings that are too long, or that no SQL statement can contain, count as others.
    """
    counts: dict[str, int] = {}
    for (key,), noisy in shown.items():
        if isinstance(key, str) and 0 < len(key) <= LONGEST_KEY and "\0" not in key:
            counts[key] = noisy
    most = sorted(counts, key=lambda key: (-counts[key], key))
    return sorted(most[:MOST_KEYS])


def counted_texts(
    dataset: Dataset,
    schema: Schema,
    norm: Norm,
) -> tuple[Bounded, ...]:
    """Returns, for each text column, the counting query of the number of units for each string."""
    questions = []
    for one in schema.axes:
        if isinstance(one, TextAxis):
            scan = Scan(schema.table, columns=(one.read,), owner=owner_of(dataset, schema.table))
            raw = Raw(scan, (GroupKey(Value.of(one.read), None),), (CountUnits(),))
            questions.append(compile_plan(raw, dataset, norm))
    return tuple(questions)
