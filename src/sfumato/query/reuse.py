# SPDX-License-Identifier: Apache-2.0
"""Parts of a question that earlier answers have released: read again, at no cost. Proof: reuse.proof.md."""

import hashlib
from dataclasses import replace
from typing import cast

from sfumato.errors import unknown
from sfumato.ledger.spend import Ledger
from sfumato.mechanisms.additive import AdditiveMechanism
from sfumato.mechanisms.grid import GridQuantiles
from sfumato.noise import DiscreteGaussian, DiscreteLaplace, Noise
from sfumato.plan.show import title
from sfumato.privacy.event import Json
from sfumato.query.choose import Mechanism, Stored
from sfumato.query.estimate import Released
from sfumato.query.release import Asked
from sfumato.query.table import load_body, parts_from_json

# So many parts are remembered; beyond, all are forgotten and looked at again.
_REMEMBERED = 2**14


class Shelf:
    """The parts that the answers of a ledger hold.

    Answers never change, so how exact each of their parts is is remembered: a question that is
    asked again and again, at a higher price each time, does not read all that it was told before.
    """

    __slots__ = ("_laws", "_ledger")

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._laws: dict[tuple[bytes, str], Released | None] = {}

    def first(self, asked: Asked) -> dict[int, Stored]:
        """By its place, of each part the earliest release with no more noise than its mechanism adds."""
        named = [asked.parts, *asked.earlier_parts]
        found = self._ledger.released(
            [key for keys in named for key in keys if key], asked.asker.account
        )
        first = {}
        for place, mechanism in enumerate(asked.planned.mechanisms):
            # answers of earlier formats are the older ones
            keys = [keys[place] for keys in reversed(named)]
            bodies = ((body, key) for key in keys for body in found.get(key, ()))
            fit = next((each for each in bodies if self._fits(*each, mechanism)), None)
            stored = None if fit is None else _part(*fit)
            if stored is not None:
                first[place] = stored
        return first

    def _fits(self, body: bytes, key: str, mechanism: Mechanism) -> bool:
        law = self._law(body, key)
        return law is not None and is_as_exact(law, mechanism)

    def _law(self, body: bytes, key: str) -> Released | None:
        """A part without its numbers."""
        name = hashlib.sha256(body).digest(), key
        if name in (laws := self._laws):
            return laws[name]
        part = _part(body, key)
        law = None if part is None else replace(part.released, values=(), copies=())
        # anew: another thread may be reading those that there are
        self._laws = {name: law} if len(laws) >= _REMEMBERED else laws
        self._laws[name] = law
        return law


def reuse(asked: Asked, shelf: Shelf) -> Asked:
    """The same question with every part that is stored already, at least as exact as it would be bought.

    Of several the earliest, so that the same question goes on to have the same answer.

    Guarantees:
        a stored part has no more noise than was asked for
        a part under other bounds is not reused
    """
    planned = asked.planned
    stored = shelf.first(asked)
    if not stored:
        return asked
    notes = tuple(
        f"{title(planned.bounded.parts[place].aggregate)} was released before (charge {each.charge[:12]}) "
        "and is read again, at no cost."
        for place, each in stored.items()
    )
    return replace(asked, planned=replace(planned, stored=stored, notes=(*planned.notes, *notes)))


def is_as_exact(released: Released, mechanism: Mechanism) -> bool:
    """Whether a release has no more noise than a mechanism would add."""
    if isinstance(mechanism, GridQuantiles):
        return released.noise is None and all(
            one >= other for one, other in zip(released.rates, mechanism.rates, strict=True)
        )
    if not isinstance(mechanism, AdditiveMechanism) or released.noise is None:
        return False
    return _is_narrower(released.noise, mechanism.noise)


def _is_narrower(one: Noise, other: Noise) -> bool:
    for each in (one, other):
        if not isinstance(each, Noise):
            raise unknown(each)
    match one, other:
        case DiscreteLaplace(scale), DiscreteLaplace(wanted):
            return scale <= wanted
        case DiscreteGaussian(), DiscreteGaussian():
            return one.sigma_squared <= other.sigma_squared
        case _:
            return False


def _part(body: bytes, key: str) -> Stored | None:
    """The part of an answer that has a key; the answer itself says which, whatever led to it."""
    form = load_body(body)
    keys = cast(list[Json], form.get("parts", []))
    if key not in keys:
        return None
    parts = cast(list[Json], cast(dict[str, Json], form["released"])["parts"])
    (released,) = parts_from_json([parts[keys.index(key)]])
    return Stored(str(form["charge_id"]), released)
