# SPDX-License-Identifier: Apache-2.0
"""The charges of one question that are taken together, before the first of them is used."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from fractions import Fraction
from typing import TypeAlias

from sfumato.errors import InProgress, LedgerError, Refused, WrongUse
from sfumato.ledger.request import Request
from sfumato.ledger.spend import Ledger
from sfumato.noise import DiscreteGaussian
from sfumato.noise.entropy import token
from sfumato.privacy.distance import Distance, Norm
from sfumato.privacy.event import AdditiveNoise, ApproxEvent, Composed, Event, PureEvent
from sfumato.privacy.unit import Relation
from sfumato.query.request import Price

# What a step of a question is found by: its text and its price.
Name: TypeAlias = tuple[str, Price]


class Held:
    """Reserved charges by the step that each is for."""

    def __init__(self, ledger: Ledger, charges: Mapping[Name, tuple[str, Request]]) -> None:
        self._ledger = ledger
        self._charges = dict(charges)
        self._used: list[str] = []

    def take(self) -> None:
        """Reserves all of them in one unit of work.

        Raises:
            As ``Ledger.reserve_all``; then nothing was taken.
        """
        if not self._charges:
            return
        try:
            held = self._charges.values()
            self._ledger.reserve_all([request for _, request in held], [charge for charge, _ in held])
        except (Refused, WrongUse, InProgress):
            self._charges.clear()
            raise

    def reserve(self, name: Name, request: Request, charge_id: str = "") -> str:
        """The charge of a request: the one held for its step, exchanged where it is for another request.

        ``charge_id`` is the id of a new charge, as in ``Ledger.reserve``.

        Raises:
            As ``Ledger.reserve``; then the charge is still held.
        """
        if name not in self._charges:
            return self._ledger.reserve(request, charge_id)
        charge, held = self._charges[name]
        taken = charge if held == request else self._ledger.exchange(charge, request, charge_id)
        self._used.append(taken)
        del self._charges[name]
        return taken

    def give_back(self, *, interrupted: bool = False) -> None:
        """Voids what was not used: nothing was read for it.

        A caller who was ``interrupted`` may not have seen what it was given.
        """
        for charge in [charge for charge, _ in self._charges.values()] + self._used * interrupted:
            with suppress(LedgerError):
                # it is voided when its lease ends, or at the next opening
                self._ledger.void(charge)
        self._charges.clear()


@contextmanager
def together(ledger: Ledger, requests: Mapping[Name, Request]) -> Iterator[Held]:
    """Reserves all requests in one unit of work; what is not used in the end is given back.

    Guarantees:
        a question of several charges takes them together or pays for nothing
        a charge that is not used is given back

    Raises:
        As ``Ledger.reserve_all``; then nothing was taken.
    """
    held = Held(ledger, {name: (token(), request) for name, request in requests.items()})
    interrupted = True
    try:
        held.take()
        yield held
        interrupted = False
    except Exception:
        interrupted = False
        raise
    finally:
        held.give_back(interrupted=interrupted)


def ceiling(price: Price, norm: Norm, relation: Relation) -> Event:
    """An event that costs, at both gates, at least what any question at a price costs.

    What a question will be may depend on an answer that is not there yet; what it costs at most does not.

    Guarantees:
        no question costs more than the ceiling of its price
    """
    epsilon, rho = price.epsilon, price.rho
    if price.target is not None and price.most is not None:
        epsilon, rho = (price.most, None) if norm is Norm.L1 else (None, price.most**2 / 2)
    if epsilon is not None:
        noise: Event = PureEvent(epsilon, relation)
    else:
        assert rho is not None, "a price is an epsilon, a rho or a target"
        law = DiscreteGaussian(sigma_squared=1 / (2 * rho))
        noise = AdditiveNoise(law, Distance(Norm.L2, Fraction(1), relation))
    return noise if price.delta is None else Composed((noise, ApproxEvent(Fraction(0), price.delta, relation)))
