# SPDX-License-Identifier: Apache-2.0
"""The fitted model of additive, linear, ridge and naive Bayes recipes: predict, plot, save; costs
no budget.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.errors import WrongUse
from sfumato.learning.curve_plot import Curve, curves_chart
from sfumato.learning.examples_of import Examples
from sfumato.learning.features import Bagged, Binned, Feature, Features, Floats, Line, Listed
from sfumato.learning.frames import (
    FrameColumn,
    codes_of,
    read_bag,
    read_columns,
    rounding_note,
    with_report,
)
from sfumato.learning.outcomes import WeightOutcomes, integer_weights, predicted
from sfumato.learning.scorable import Scorable
from sfumato.learning.stored import FORMAT, numbers, read_cost, text, texts, whole, wholes
from sfumato.plan.rows import MISSING
from sfumato.plan.show import form
from sfumato.privacy.event import Json
from sfumato.query.cost import Cost
from sfumato.show.svg import Figure

# Bands are so many estimated standard deviations to each side.
_BAND = 2.5
_MOST_PANELS = 60
# Declared values of a column, at the most.
_MOST_VALUES = 2**31


@dataclass(frozen=True, slots=True, repr=False)
class Model(Scorable):
    """A fitted linear model over feature coordinates: the score of a row is a sum of the model's
    weights at the row's coordinates.

    ``fit`` returns one for ``Additive``, ``LogisticRegression``, ``Ridge`` and ``NaiveBayes``.

    ``scores`` holds the weights, one row per score: one score for two classes, else one per class.
    Without ``classes`` the label is a number, which the score gives on a scale from 0 to 1 between
    ``bounds``. After noisy gradient descent, ``deviations`` estimates the noise of each coordinate
    around the mean of its curve, and ``middles`` is that mean; otherwise both are None.
    """

    recipe: str
    features: Features
    columns: tuple[FrameColumn, ...]
    scores: Floats
    classes: tuple[str, ...]
    bounds: tuple[float, float]
    cost: Cost
    charge: str
    middles: Floats | None = None
    deviations: Floats | None = None

    def __repr__(self) -> str:
        names = ", ".join(column.name for column in self.columns)
        return (
            f"{self.recipe} of {names} (cost: {self.cost}, charge {self.charge})"
            + rounding_note(self.columns)
        )

    def predict_proba(self, frame: Any) -> Floats:
        """Returns the probability of each class, for each row of a frame.

        Raises:
            WrongUse: the label is a number: see ``predict``.
            UnknownName: the frame lacks a feature.
            WrongUse: columns of unequal length, or of a type that holds no declared value.
        """
        if not self.classes:
            raise WrongUse("Probabilities of a number.", remedy="model.predict(frame)")
        scores = self._scored(frame)
        if len(self.scores) == 1:
            scores = np.stack([np.zeros(len(scores)), scores[:, 0]], axis=1)
        shares = np.exp(scores - scores.max(axis=1, keepdims=True))
        found: Floats = shares / shares.sum(axis=1, keepdims=True)
        return found

    def predict(self, frame: Any, *, report: bool = False) -> Any:
        """Returns the most probable class of each row; the number if the label is a number.

        With ``report`` returns a pair: the predictions, and a ``ColumnReport`` of unread values per
        column.
        """
        return with_report(self._predicted(frame), frame, self.columns, report=report)

    def _predicted(self, frame: Any) -> list[str] | Floats:
        if self.classes:
            best = self.predict_proba(frame).argmax(axis=1)
            return [self.classes[place] for place in best]
        lower, upper = self.bounds
        shares = np.clip(self._scored(frame)[:, 0], 0, 1)
        found: Floats = lower + (upper - lower) * shares
        return found

    def _scored(self, frame: Any) -> Floats:
        """Returns the scores of each row."""
        codes = codes_of(frame, self.columns)
        scale = self.features.scale
        scores = np.zeros((len(codes[0]), len(self.scores)))
        for places, weight in self.features.shares(codes):
            scores += (self.scores[:, places] * (weight / scale)).T
        return scores

    def curve(self, name: str) -> Floats:
        """Returns the weights of one feature: its bins or values, then missing values last."""
        names = [part.name for part in self.features.parts]
        if name not in names:
            raise WrongUse(f"No feature {name!r}.", allowed=", ".join(names))
        place = names.index(name)
        first = self.features.starts[place]
        return self.scores[:, first : first + self.features.parts[place].width]

    def plot(self, names: Sequence[str] = ()) -> Figure:
        """Draws the curves of some features, or of all, on one scale; each curve is centred at 0.

        A band shows the noise: 2.5 estimated standard deviations to each side, which held 90 to 99%
        of the points of fits to the same rows (docs/learning.md). It says nothing about other rows.
        Models with a single release have no bands. Of more than 60 features, those whose curves
        differ most are drawn. Texts are not: the order of their buckets means nothing.

        Raises:
            WrongUse: no such feature, or only texts.
        """
        parts = {
            part.name: place
            for place, part in enumerate(self.features.parts)
            if not isinstance(part, Bagged)
        }
        for name in names:
            self.curve(name)
        chosen = [name for name in dict.fromkeys(names) if name in parts] or list(parts)
        if not chosen:
            raise WrongUse(
                "A plot of a text, whose buckets have no order.", allowed="other columns"
            )
        curves = [self._drawn(parts[name]) for name in chosen]
        if len(curves) > _MOST_PANELS:
            steepest = sorted(curves, key=lambda each: -float(np.ptp(each.values)))
            kept = {each.name for each in steepest[:_MOST_PANELS]}
            curves = [each for each in curves if each.name in kept]
        lines = self.classes if len(self.scores) > 2 else ("",)
        return curves_chart(curves, lines, f"{self.recipe}: what each column adds", self._axis)

    @property
    def _axis(self) -> str:
        """The caption of the vertical axis."""
        quantity = "units of the label"
        if self.classes:
            quantity = (
                "log probability" if len(self.scores) > 2 else f"log odds of {self.classes[1]}"
            )
        band = "no bands: their noise is not known"
        if self.deviations is not None:
            band = "bands: the noise, 2.5 standard deviations"
        return f"{quantity}, around the mean of each curve; {band}"

    def _drawn(self, feature_index: int) -> Curve:
        """Returns the curve of the feature at this index, centred and in units of the label."""
        part = self.features.parts[feature_index]
        first = self.features.starts[feature_index]
        own = slice(first, first + part.width)
        values = self.scores
        if len(values) == 2:
            values = values[1:] - values[:1]
        lower, upper = self.bounds
        unit = 1.0 if self.classes else upper - lower
        middle = values[:, own].mean(axis=1, keepdims=True)
        if self.middles is not None:
            middle = self.middles[np.newaxis, own]
        half = None if self.deviations is None else _BAND * unit * self.deviations[own]
        column = self._column_of(part.name)
        return Curve(part, column, unit * (values[:, own] - middle), half)

    def _column_of(self, feature: str) -> FrameColumn:
        """Returns the frame column that a feature reads; several features read one array."""
        by_name = {column.name: column for column in self.columns}
        return by_name.get(feature) or by_name[feature.rpartition("[")[0]]

    @property
    def fingerprint(self) -> str:
        """A hash of the features, the classes and the integer weights."""
        weights = integer_weights(self.scores)
        said = json.dumps([form(self.features), self.classes, list(weights.shape)])
        return hashlib.sha256(said.encode() + weights.astype("<i8").tobytes()).hexdigest()

    def outcomes(self, examples: Examples) -> WeightOutcomes:
        """Returns the statistic that counts the model's right and wrong predictions on private
        examples.

        Raises:
            WrongUse: a model file whose numbers cannot be applied to rows.
        """
        weights = integer_weights(self.scores)
        codes = [np.array([MISSING, 0, 1], np.int64)] * self.features.columns
        try:
            if weights.shape != (len(self.classes), self.features.width):
                raise ValueError("weights of another shape")
            predicted(weights, self.features, codes)
        except (ValueError, IndexError, OverflowError, ArithmeticError) as damaged:
            raise WrongUse("The model is damaged.", allowed="what model.save wrote") from damaged
        plan, label = examples.plan, examples.label
        return WeightOutcomes(plan, label, self.features, examples.places, weights)

    def save(self, path: str | Path) -> None:
        """Writes the model as JSON; ``load`` reads it."""
        stored: dict[str, Json] = {
            "format": FORMAT,
            "recipe": self.recipe,
            "features": written_features(self.features),
            "columns": [column.to_json() for column in self.columns],
            "scores": self.scores.tolist(),
            "classes": list(self.classes),
            "bounds": list(self.bounds),
            "cost": self.cost.to_json(),
            "charge": self.charge,
        }
        if self.middles is not None and self.deviations is not None:
            stored |= {"middles": self.middles.tolist(), "deviations": self.deviations.tolist()}
        Path(path).write_text(json.dumps(stored, indent=1), encoding="utf-8")

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "Model":
        """Builds the model from its stored JSON.

        Raises:
            ValueError: parts that do not fit together.
        """
        features = read_features(stored["features"])
        classes = texts(stored["classes"])
        width = features.width
        scores = numbers(stored["scores"], None, width)
        is_single = len(scores) == 1 and len(classes) in (0, 2)
        if len(classes) == 1 or not (is_single or len(scores) == len(classes)):
            raise ValueError("scores of other classes")
        lower, upper = numbers(stored["bounds"], 2).tolist()
        columns = read_columns(stored["columns"], [part.name for part in features.parts])
        if sum(column.width for column in columns) != features.columns:
            raise ValueError("texts in another bag")
        bands = [stored.get(name) for name in ("middles", "deviations")]
        return cls(
            text(stored["recipe"]),
            features,
            columns,
            scores,
            classes,
            (lower, upper),
            read_cost(stored["cost"]),
            text(stored["charge"]),
            *(None if band is None else numbers(band, width) for band in bands),
        )


def written_features(features: Features) -> list[Json]:
    """Returns features as JSON, for a model file."""
    return [{"kind": type(part).__name__, **_fields(part)} for part in features.parts]


def read_features(stored: Sequence[Mapping[str, Any]]) -> Features:
    """Builds features from the JSON of a model file.

    Raises:
        ValueError: an invalid feature.
    """
    return Features(tuple(map(_feature, stored)))


def _feature(part: Mapping[str, Any]) -> Feature:
    """Builds one feature from its JSON."""
    kind, name = part["kind"], text(part["name"])
    if kind == Bagged.__name__:
        return Bagged(name, read_bag(part))
    if kind == Binned.__name__:
        edges = wholes(part["edges"])
        if any(high <= low for low, high in pairwise(edges)):
            raise ValueError("edges that do not ascend")
        return Binned(name, edges)
    lower = whole(part["lower"])
    if kind == Listed.__name__:
        return Listed(name, lower, whole(part["count"], 1, _MOST_VALUES))
    if kind != Line.__name__:
        raise ValueError("no such feature")
    return Line(name, lower, whole(part["upper"], lower + 1))


def _fields(part: Any) -> dict[str, Json]:
    """The fields of a feature."""
    if isinstance(part, Bagged):
        return {"name": part.name, "bag": [part.bag.buckets, part.bag.most]}
    return {field.name: getattr(part, field.name) for field in fields(part)}
