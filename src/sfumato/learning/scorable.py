# SPDX-License-Identifier: Apache-2.0
"""The interface of models that ``score``, ``choose`` and ``tune`` accept."""

from abc import ABC, abstractmethod
from typing import Any

from sfumato.errors import WrongUse
from sfumato.learning.bag import Bag
from sfumato.learning.examples_of import Examples
from sfumato.learning.frames import FrameColumn
from sfumato.learning.outcomes import Outcomes


class Scorable(ABC):
    """The base class of fitted classifiers whose right predictions on private rows can be counted
    with noise, under a charge.

    ``classes`` are the values of its label, ``columns`` the features that it reads.

    >>> from sfumato.learning import Model
    >>> issubclass(Model, Scorable)
    True
    """

    __slots__ = ()

    classes: tuple[str, ...]
    columns: tuple[FrameColumn, ...]

    @property
    def bag(self) -> Bag | None:
        """The setting of how the texts among the features are read; None if there are none."""
        return next((column.bag for column in self.columns if column.bag is not None), None)

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """A hash of everything in the model that determines its predictions."""

    @abstractmethod
    def outcomes(self, examples: Examples) -> Outcomes:
        """Returns the statistic that counts the model's right and wrong predictions on private
        examples.

        Raises:
            WrongUse: what cannot be applied to rows, before any charge.
        """

    def plot(self, *_: Any) -> Any:
        """Raises WrongUse; only models with a curve for each column can be plotted, and override
        it.

        Raises:
            WrongUse: always.
        """
        raise WrongUse(
            f"A plot of a {type(self).__name__}, which has no curve for each column.",
            allowed="models of Additive, LogisticRegression, Ridge and NaiveBayes",
        )
