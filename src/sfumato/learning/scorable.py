# SPDX-License-Identifier: Apache-2.0
"""What ``score`` needs of a model."""

from abc import ABC, abstractmethod
from typing import Any

from sfumato.errors import WrongUse
from sfumato.learning.examples_of import Examples
from sfumato.learning.frames import FrameColumn
from sfumato.learning.outcomes import Outcomes


class Scorable(ABC):
    """A model whose right predictions can be counted under a charge.

    ``classes`` are the values of its label, ``columns`` what it reads.

    >>> from sfumato.learning import Model
    >>> issubclass(Model, Scorable)
    True
    """

    __slots__ = ()

    classes: tuple[str, ...]
    columns: tuple[FrameColumn, ...]

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """A hash of all that predicts."""

    @abstractmethod
    def outcomes(self, examples: Examples) -> Outcomes:
        """The statistic over rows with the same columns and classes.

        Raises:
            WrongUse: what cannot be applied to rows, before any charge.
        """

    def plot(self, *_: Any) -> Any:
        """Refused, unless the model is a sum of curves.

        Raises:
            WrongUse: always.
        """
        raise WrongUse(
            f"A plot of a {type(self).__name__}, which has no curve for each column.",
            allowed="models of Additive, LogisticRegression, Ridge and NaiveBayes",
        )
