# SPDX-License-Identifier: Apache-2.0
"""Reserves all charges of one question together, before the first of them is used.

``statements`` uses it for a question with sub-queries, and for the questions of a publication.
"""

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
    """The charges that are reserved together for a question and its sub-queries, by step.

    ``paid`` is true if one of them was used.
    """

    def __init__(self, ledger: Ledger, charges: Mapping[Name, tuple[str, Request]]) -> None:
        self._ledger = ledger
        self._charges = dict(charges)
        self._used: list[str] = []
        self.paid = False

    def take(self) -> None:
        """Reserves all charges in one transaction, which also shares answers of other accounts.

        Raises:
            As ``Ledger.reserve_all``; then nothing was reserved.
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
        for name, (charge, _) in list(self._charges.items()):
            if charge not in taken:
                del self._charges[name]

    def of(self, name: Name) -> "_StepPayer":
        """Returns the payer of one step: its reserved charge."""
        return _StepPayer(self, name)

    def recall(self, name: Name, request: Request) -> bytes | None:
        """Returns the stored answer of a step, or None, as ``Ledger.recall`` does.

        An answer that is shared by another account is paid with the charge reserved for the step.
        """
        charge, _ = self._charges.get(name, ("", None))
        return self._ledger.recall(request, held=charge)

    def reserve(
        self,
        name: Name,
        request: Request,
        charge_id: str = "",
    ) -> str:
        """Returns the id of the charge that pays for a step: the reserved one, exchanged if it is
        for another request.

        ``charge_id`` is the id of a new charge, as in ``Ledger.reserve``.

        Raises:
            As ``Ledger.reserve``; then the charge stays reserved.
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
        """Records that a step was answered: the charges used so far count as paid."""
        self.paid |= bool(self._used)

    def give_back(self, *, interrupted: bool = False) -> None:
        """Voids the charges that were not used, which returns their cost.

        After an interrupt the used charges are abandoned too, since the caller may not know of
        them.
        """
        left = [charge for charge, _ in self._charges.values()]
        if interrupted:
            left += self._used
        for charge in left:
            abandon(self._ledger, charge)
        self._charges.clear()


@dataclass(frozen=True, slots=True)
class _StepPayer:
    """The payer of one step of a question, through its reserved charge."""

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
    """A context manager that reserves all requests in one transaction; unused charges are voided
    when it ends.

    Guarantees:
        a question of several charges takes them together or pays for nothing
        a charge that is not used is given back
        a question that is cancelled says whether any of it was paid

    Raises:
        As ``Ledger.reserve_all``; then nothing was reserved.
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
    """Returns the requests to reserve for the steps of a question, in the order of their answers.

    A step is reserved under its own key only if neither it nor an earlier step contains a
    placeholder. So a caller that has reserved a key never waits for another. For any other step a
    charge is reserved under a key that no other caller waits for.
    """
    requests: dict[Name, Request] = {}
    guessed = False
    for step, asked in steps:
        guessed |= step.guessed
        request = asked.request()
        if step.guessed:
            requests[step.name] = _largest_request(step, asked)
        elif (
            ledger.holds(request)
            or asked.planned.fresh is None
            or _has_same_question(requests, request)
        ):
            # it is paid already, or listed already
            continue
        elif guessed and ledger.to_share(request) is None:
            requests[step.name] = _unawaited_request(step, request)
        else:
            requests[step.name] = request
    return requests


def require_key(
    step: Step,
    asked: Asked,
    key: str,
    ledger: Ledger,
) -> None:
    """Raises KeyUsed, before any charge, if an idempotency key is bound to another question."""
    request = asked.request(key)
    # a caller that repeats the bound question has paid for its sub-queries, so it is not guessed
    ledger.require_key(_unawaited_request(step, request) if step.guessed else request)


def _has_same_question(requests: Mapping[Name, Request], request: Request) -> bool:
    """Whether a request for the same question is among the requests."""
    return any(listed.question == request.question for listed in requests.values())


def _largest_request(step: Step, asked: Asked) -> Request:
    """The request for a step that depends on missing answers: for the most that it can cost."""
    bounded = asked.planned.bounded
    most = ceiling(step.price, bounded.norm, bounded.parts[0].distance.relation)
    return replace(_unawaited_request(step, asked.request()), event=most)


def _unawaited_request(step: Step, request: Request) -> Request:
    """The request under another key, which only the same question of the same account has."""
    place = canonical_json([request.question, step.question.text])
    question = hashlib.sha256(place.encode()).hexdigest()
    return replace(request, question=question, shared="", earlier=())


def ceiling(price: Price, norm: Norm, relation: Relation) -> Event:
    """Returns an event that costs at least as much as any question at a price, in every measure.

    A question may depend on an answer that does not exist yet; its largest cost does not.

    Guarantees:
        no question costs more than the ceiling of its price
    """
    epsilon = price.epsilon
    rho = price.rho
    if price.target is not None and price.most is not None:
        epsilon, rho = (price.most, None) if norm is Norm.L1 else (None, price.most**2 / 2)
    if epsilon is not None:
        noise: Event = PureEvent(epsilon, relation)
    else:
        assert rho is not None, "a price is an epsilon, a rho or a target"
        law = DiscreteGaussian(sigma_squared=1 / (2 * rho))
        noise = AdditiveNoise(law, Distance(Norm.L2, Fraction(1), relation))
    if price.delta is None:
        return noise
    return Composed((noise, ApproxEvent(Fraction(0), price.delta, relation)))
