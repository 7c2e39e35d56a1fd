# SPDX-License-Identifier: Apache-2.0
"""Fitted forests (the model of ``Forest``): predict, save and load; costs no budget."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from sfumato.errors import WrongUse
from sfumato.learning.examples_of import Examples
from sfumato.learning.features import Features, Floats
from sfumato.learning.frames import FrameColumn, codes_of, read_columns, rounding_note, with_report
from sfumato.learning.model import read_features, written_features
from sfumato.learning.scorable import Scorable
from sfumato.learning.splits import coordinates_of
from sfumato.learning.stored import numbers, read_cost, text, texts, wholes, write
from sfumato.learning.tree_outcomes import ForestOutcomes, votes_of
from sfumato.noise import Integers
from sfumato.plan.show import form
from sfumato.privacy.event import Json
from sfumato.query.cost import Cost

# The whole vote of a tree.
_VOTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Grown:
    """A decision tree of a fitted forest: the tests of each level, and the class shares of each
    leaf.
    """

    levels: tuple[Integers, ...]
    shares: Floats

    @property
    def tests(self) -> list[Json]:
        """The tests of the tree, level by level, as JSON."""
        return [level.tolist() for level in self.levels]

    @property
    def votes(self) -> Integers:
        """The class shares of each leaf as integers in units of 2^-20, so that the sum over trees
        is exact.
        """
        return np.rint(np.clip(self.shares, 0, 1) * _VOTES).astype(np.int64)


@dataclass(frozen=True, slots=True, repr=False)
class Trees(Scorable):
    """A forest: the mean of several decision trees over the same features.

    ``fit`` returns one for ``Forest``.
    """

    features: Features
    columns: tuple[FrameColumn, ...]
    trees: tuple[Grown, ...]
    classes: tuple[str, ...]
    cost: Cost
    charge: str

    kind: ClassVar[str] = "trees"

    def __repr__(self) -> str:
        names = ", ".join(column.name for column in self.columns)
        told = f"(cost: {self.cost}, charge {self.charge})"
        return f"{len(self.trees)} decision trees of {names} {told}" + rounding_note(self.columns)

    def predict_proba(self, frame: Any) -> Floats:
        """Returns the mean class shares of the leaves, for each row of a frame.

        Raises:
            UnknownName: the frame lacks a feature.
            WrongUse: columns of unequal length, or of a type that holds no declared value.
        """
        votes = self._votes(frame).astype(np.float64)
        found: Floats = votes / votes.sum(axis=1, keepdims=True)
        return found

    def predict(self, frame: Any, *, report: bool = False) -> Any:
        """Returns the most probable class of each row.

        With ``report`` returns a pair: the predictions, and a ``ColumnReport`` of unread values per
        column.
        """
        found = [self.classes[place] for place in self._votes(frame).argmax(axis=1)]
        return with_report(found, frame, self.columns, report=report)

    def _votes(self, frame: Any) -> Integers:
        codes = codes_of(frame, self.columns)
        coordinates = coordinates_of(self.features, codes)
        return votes_of(self.features, coordinates, self._levels, self._each)

    @property
    def _levels(self) -> tuple[tuple[Integers, ...], ...]:
        """The tests of each tree."""
        return tuple(tree.levels for tree in self.trees)

    @property
    def _each(self) -> tuple[Integers, ...]:
        """The votes of the leaves of each tree."""
        return tuple(tree.votes for tree in self.trees)

    @property
    def fingerprint(self) -> str:
        """A hash of the features, the classes, the tests and the votes."""
        votes = [each.tolist() for each in self._each]
        said = json.dumps([form(self.features), self.classes, self._tests, votes])
        return hashlib.sha256(said.encode()).hexdigest()

    def outcomes(self, examples: Examples) -> ForestOutcomes:
        """Returns the statistic that counts the forest's right and wrong predictions on private
        examples.
        """
        plan, label, places = examples.plan, examples.label, examples.places
        return ForestOutcomes(plan, label, self.features, places, self._levels, self._each)

    @property
    def _tests(self) -> list[Json]:
        """The tests of each tree, level by level."""
        return [tree.tests for tree in self.trees]

    def save(self, path: str | Path) -> None:
        """Writes the trees as JSON; ``ln.load`` reads it."""
        stored: dict[str, Json] = {
            "features": written_features(self.features),
            "columns": [column.to_json() for column in self.columns],
            "levels": self._tests,
            "shares": [tree.shares.tolist() for tree in self.trees],
            "classes": list(self.classes),
            "cost": self.cost.to_json(),
            "charge": self.charge,
        }
        write(path, self.kind, stored)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "Trees":
        """Builds the forest from its stored JSON.

        Raises:
            WrongUse: a test of a feature that the trees do not have.
        """
        features, classes = read_features(stored["features"]), texts(stored["classes"])
        trees = []
        for tests, leaves in zip(stored["levels"], stored["shares"], strict=True):
            levels = tuple(np.array(wholes(level), np.int64) for level in tests)
            tree = Grown(levels, numbers(leaves, None, None))
            _require_whole(tree, features.width, len(classes))
            trees.append(tree)
        if not trees:
            raise WrongUse("A forest without trees.", allowed="what model.save wrote")
        columns = read_columns(stored["columns"], [part.name for part in features.parts])
        cost, charge = read_cost(stored["cost"]), text(stored["charge"])
        return cls(features, columns, tuple(trees), classes, cost, charge)


def _require_whole(tree: Grown, width: int, classes: int) -> None:
    """Raises WrongUse for a tree with invalid tests, or with leaves that are no class shares."""
    depth, shares = len(tree.levels), tree.shares
    sound = shares.shape == (1 << depth, classes) and classes > 0
    if sound:
        sound = bool(np.isfinite(shares).all() and (tree.votes.sum(axis=1) > 0).all())
    for place, level in enumerate(tree.levels):
        inside = (level >= 0) & (level < width)
        sound = sound and level.shape == (1 << place,) and bool(inside.all())
    if not sound:
        raise WrongUse("The trees are damaged.", allowed="what model.save wrote")
