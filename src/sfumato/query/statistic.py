# SPDX-License-Identifier: Apache-2.0
"""What a statistic of private data promises: how far neighbours move it, and its exact integers.

Only a statistic needs a privacy proof; what is done with its noisy integers needs none. Each file
with one has a proof note, a test on neighbours and a broken version that the test notices.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, Generic, NoReturn, TypeVar

from sfumato.engines.base import Exact
from sfumato.errors import InvalidDeclaration
from sfumato.plan.status import Bounded
from sfumato.privacy.distance import Distance, Norm

E = TypeVar("E", covariant=True)


class Opened:
    """The data of one charge, opened for one bounded plan; read once, when it is first needed.

    Only a statistic's ``exact`` is handed one.

    Guarantees:
        only the plan that was opened is read
    """

    __slots__ = ("_exact", "_plan", "_read")

    def __init__(self, plan: Bounded, read: Callable[[], Exact]) -> None:
        self._plan, self._read = plan, read
        self._exact: Exact | None = None

    def integers(self, plan: Bounded) -> Exact:
        """The exact integers of the plan, part by part.

        Raises:
            InvalidDeclaration: it is not the plan that was opened.
        """
        if plan is not self._plan and plan != self._plan:
            raise InvalidDeclaration("A statistic of another plan.", allowed="the plan that the task opened")
        if self._exact is None:
            self._exact = self._read()
        return self._exact

    def __repr__(self) -> str:
        return "Opened()"

    def __reduce__(self) -> NoReturn:
        raise TypeError("exact integers are not pickled")


class BoundedStatistic(ABC, Generic[E]):
    """Integers of private data, and the proved distance between those of neighbours.

    ``is_monotone``: between neighbours all integers move in one direction; proved like the distance.
    """

    is_monotone: ClassVar[bool] = False

    @abstractmethod
    def distance(self, norm: Norm) -> Distance:
        """How far neighbours move the integers, in a norm; a function of declarations alone.

        Raises:
            InvalidDeclaration: nothing is proved in this norm.
        """

    @abstractmethod
    def exact(self, opened: Opened) -> E:
        """The exact integers. Only a curator asks for them."""
