# SPDX-License-Identifier: Apache-2.0
"""Fitted decision trees (the model of ``DecisionTree``): predict, save and load; costs no budget."""

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
from sfumato.learning.splits import Candidates, coordinates_of
from sfumato.learning.stored import numbers, read_cost, text, texts, wholes, write
from sfumato.learning.tree_outcomes import TreeOutcomes
from sfumato.noise import Integers
from sfumato.plan.show import form
from sfumato.privacy.event import Json
from sfumato.query.cost import Cost


@dataclass(frozen=True, slots=True, repr=False)
class Tree(Scorable):
    """A decision tree: a test for each node of each level, and the class shares of each leaf.

    ``fit`` returns one for ``DecisionTree``.
    """

    features: Features
    columns: tuple[FrameColumn, ...]
    levels: tuple[Integers, ...]
    shares: Floats
    classes: tuple[str, ...]
    cost: Cost
    charge: str

    kind: ClassVar[str] = "tree"

    def __repr__(self) -> str:
        names = ", ".join(column.name for column in self.columns)
        told = f"(cost: {self.cost}, charge {self.charge})"
        about = f"decision tree of {names}, depth {len(self.levels)} {told}"
        return about + rounding_note(self.columns)

    def predict_proba(self, frame: Any) -> Floats:
        """Returns the probability of each class, for each row of a frame.

        Raises:
            UnknownName: the frame lacks a feature.
            WrongUse: columns of unequal length, or of a type that holds no declared value.
        """
        codes = codes_of(frame, self.columns)
        coordinates = coordinates_of(self.features, codes)
        found: Floats = self.shares[Candidates(self.features).leaves(coordinates, self.levels)]
        return found

    def predict(self, frame: Any, *, report: bool = False) -> Any:
        """Returns the most probable class of each row.

        With ``report`` returns a pair: the predictions, and a ``ColumnReport`` of unread values per
        column.
        """
        found = [self.classes[place] for place in self.predict_proba(frame).argmax(axis=1)]
        return with_report(found, frame, self.columns, report=report)

    @property
    def fingerprint(self) -> str:
        """A hash of the features, the classes, the tests and the class of each leaf."""
        said = json.dumps([form(self.features), self.classes, self._tests, self._best.tolist()])
        return hashlib.sha256(said.encode()).hexdigest()

    def outcomes(self, examples: Examples) -> TreeOutcomes:
        """Returns the statistic that counts the tree's right and wrong predictions on private
        examples.
        """
        plan, label, places = examples.plan, examples.label, examples.places
        return TreeOutcomes(plan, label, self.features, places, self.levels, self._best)

    @property
    def _best(self) -> Integers:
        """The class index of each leaf."""
        found: Integers = self.shares.argmax(axis=1)
        return found

    @property
    def _tests(self) -> list[Json]:
        """The tests, level by level."""
        return [level.tolist() for level in self.levels]

    def save(self, path: str | Path) -> None:
        """Writes the tree as JSON; ``ln.load`` reads it."""
        stored: dict[str, Json] = {
            "features": written_features(self.features),
            "columns": [column.to_json() for column in self.columns],
            "levels": self._tests,
            "shares": self.shares.tolist(),
            "classes": list(self.classes),
            "cost": self.cost.to_json(),
            "charge": self.charge,
        }
        write(path, self.kind, stored)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "Tree":
        """Builds the tree from its stored JSON.

        Raises:
            WrongUse: a test of a feature that the tree does not have.
        """
        features = read_features(stored["features"])
        levels = tuple(np.array(wholes(level), np.int64) for level in stored["levels"])
        classes = texts(stored["classes"])
        shares = numbers(stored["shares"], None, None)
        if shares.shape != (1 << len(levels), len(classes)) or not classes:
            raise WrongUse("The tree is damaged.", allowed="what model.save wrote")
        for depth, level in enumerate(levels):
            inside = (level >= 0) & (level < features.width)
            if level.shape != (1 << depth,) or not inside.all():
                raise WrongUse("The tree is damaged.", allowed="what model.save wrote")
        columns = read_columns(stored["columns"], [part.name for part in features.parts])
        cost, charge = read_cost(stored["cost"]), text(stored["charge"])
        return cls(features, columns, levels, shares, classes, cost, charge)
