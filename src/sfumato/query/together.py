# SPDX-License-Identifier: Apache-2.0
"""The charges of one question that are taken together, before the first of them is used."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction

from sfumato.errors import Cancelled, InProgress, Refused, WrongUse
from sfumato.ledger.journal import canonical_json
from sfumato.ledger.request import Request
from sfumato.ledger.spend import Ledger
from sfumato.noise import DiscreteGaussian
from sfumato.noise.entropy import token
from sfumato.privacy.distance import Distance, Norm
from sfumato.privacy.event import AdditiveNoise, ApproxEvent, Composed, Event, PureEvent
from sfumato.privacy.unit import Relation
from sfumato.query.payer import abandon
from sfumato.query.price import Price
from sfumato.query.release import Asked
from sfumato.query.subqueries import Name, Step


class Held:
    """Reserved charges by the step that each is for; ``paid``: something of the question was paid for."""

    def __init__(self, ledger: Ledger, charges: Mapping[Name, tuple[str, Request]]) -> None:
        self._ledger = ledger
        self._charges = dict(charges)
        self._used: list[str] = []
        self.paid = False

    def take(self) -> None:
        """Reserves all of them in one unit of work; what is stored for another account is shared in it.

        Raises:
            As ``Ledger.reserve_all``; then nothing was taken.
        """
        if not self._charges:
            return
        try:
            held = self._charges.values()
            taken = self._ledger.reserve_all(
                [request for _, request in held], [charge for charge, _ in held]
            )
        except (Refused, WrongUse, InProgress):
            self._charges.clear()
            raise
        self.paid = len(taken) < len(self._charges)
        self._charges = {name: each for name, each in self._charges.items() if each[0] in taken}

    def of(self, name: Name) -> "StepPayer":
        """What a step is charged through."""
        return StepPayer(self, name)

    def recall(self, name: Name, request: Request) -> bytes | None:
        """As ``Ledger.recall``; who shares an answer pays in place of what is held for its step."""
        charge, _ = self._charges.get(name, ("", None))
        return self._ledger.recall(request, held=charge)

    def reserve(self, name: Name, request: Request, charge_id: str = "") -> str:
        """The charge of a request: the one held for its step, exchanged where it is for another request.

        ``charge_id`` is the id of a new charge, as in ``Ledger.reserve``.

        Raises:
            As ``Ledger.reserve``; then the charge is still held.
        """
        if name not in self._charges:
            taken = self._ledger.reserve(request, charge_id)
        else:
            charge, held = self._charges[name]
            taken = charge if held == request else self._ledger.exchange(charge, request, charge_id)
            del self._charges[name]
        self._used.append(taken)
        return taken

    def answered(self) -> None:
        """A step has its answer: what was reserved for it is paid."""
        self.paid |= bool(self._used)

    def give_back(self, *, interrupted: bool = False) -> None:
        """Voids what was not used: nothing was read for it.

        A caller who was ``interrupted`` may not have seen what it was given.
        """
        for charge in [charge for charge, _ in self._charges.values()] + self._used * interrupted:
            abandon(self._ledger, charge)
        self._charges.clear()


@dataclass(frozen=True, slots=True)
class StepPayer:
    """What one step of a question is charged through."""

    held: Held
    name: Name

    def recall(self, request: Request) -> bytes | None:
        """As ``Held.recall``."""
        return self.held.recall(self.name, request)

    def reserve(self, request: Request, charge_id: str = "") -> str:
        """As ``Held.reserve``."""
        return self.held.reserve(self.name, request, charge_id)


@contextmanager
def together(ledger: Ledger, requests: Mapping[Name, Request]) -> Iterator[Held]:
    """Reserves all requests in one unit of work; what is not used in the end is given back.

    Guarantees:
        a question of several charges takes them together or pays for nothing
        a charge that is not used is given back
        a question that is cancelled says whether any of it was paid

    Raises:
        As ``Ledger.reserve_all``; then nothing was taken.
    """
    held = Held(ledger, {name: (token(), request) for name, request in requests.items()})
    interrupted = True
    try:
        held.take()
        yield held
        interrupted = False
    except Exception as failed:
        interrupted = False
        if isinstance(failed, Cancelled) and held.paid:
            raise Cancelled(paid=True) from None
        raise
    finally:
        held.give_back(interrupted=interrupted)


def wanted_charges(steps: Sequence[tuple[Step, Asked]], ledger: Ledger) -> dict[Name, Request]:
    """What is to be reserved for the steps of a question, in the order in which they are answered.

    A step is reserved under its own key only if it is known and no guessed one comes before it: so
    whoever holds a key never waits for another. Of any other a charge is held that nobody waits for.
    """
    found: dict[Name, Request] = {}
    guessed = False
    for step, asked in steps:
        guessed |= step.guessed
        request = asked.request()
        if step.guessed:
            found[step.name] = _unknown(step, asked)
        elif ledger.holds(request) or asked.planned.fresh is None or _stands_in(found, request):
            # nothing is to be paid for it, or it stands there twice
            continue
        elif guessed and ledger.to_share(request) is None:
            found[step.name] = _nobodys(step, request)
        else:
            found[step.name] = request
    return found


def require_key(step: Step, asked: Asked, key: str, ledger: Ledger) -> None:
    """Refuses an idempotency key that is bound to another question (KeyUsed), before anything is charged."""
    request = asked.request(key)
    # who asks the bound question again has the answers that come first, and so knows what it is
    ledger.require_key(_nobodys(step, request) if step.guessed else request)


def _stands_in(requests: Mapping[Name, Request], request: Request) -> bool:
    return any(each.question == request.question for each in requests.values())


def _unknown(step: Step, asked: Asked) -> Request:
    """What is held for a question that depends on answers which are not there: the most that it can come to cost."""
    bounded = asked.planned.bounded
    most = ceiling(step.price, bounded.norm, bounded.parts[0].distance.relation)
    return replace(_nobodys(step, asked.request()), event=most)


def _nobodys(step: Step, request: Request) -> Request:
    """A request of the same cost under a key that only the same question of the same account holds."""
    place = canonical_json([request.question, step.question.text])
    question = hashlib.sha256(place.encode()).hexdigest()
    return replace(request, question=question, shared="", earlier=())


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
    return (
        noise
        if price.delta is None
        else Composed((noise, ApproxEvent(Fraction(0), price.delta, relation)))
    )
