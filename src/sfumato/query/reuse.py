# SPDX-License-Identifier: Apache-2.0
"""Reuses parts of a question that earlier answers have released. Proof: reuse.proof.md.

``statements`` calls ``reuse`` before a question is charged; ``publication`` compares mechanisms.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import replace
from typing import cast

from sfumato.errors import unknown
from sfumato.ledger.spend import Ledger
from sfumato.mechanisms.additive import AdditiveMechanism
from sfumato.mechanisms.grid import GridQuantiles
from sfumato.noise import DiscreteGaussian, DiscreteLaplace, Noise
from sfumato.privacy.event import Json
from sfumato.query.choose import Mechanism, Stored
from sfumato.query.estimate import Released
from sfumato.query.release import Asked
from sfumato.query.table import load_body, parts_from_json

# The most parts in the cache; it is emptied when it is full.
_REMEMBERED = 2**14


class Shelf:
    """A cache of the noisy aggregates in the stored answers of a ledger, by which questions reuse
    them.

    Answers never change, so the noise law of each part is cached: a question that is asked at
    rising prices does not parse all earlier answers again.
    """

    __slots__ = ("_laws", "_ledger")

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._laws: dict[tuple[bytes, str], Released | None] = {}

    def first(self, asked: Asked) -> dict[int, Stored]:
        """Returns earlier releases that a question can reuse, by the index of the aggregate.

        For each part it is the earliest release that is at least as exact as the part's mechanism.
        """
        named = [asked.parts, *asked.earlier_parts]
        wanted = [key for keys in named for key in keys if key]
        bodies = self._ledger.released(wanted, asked.asker.account)
        first = {}
        for place, mechanism in enumerate(asked.planned.mechanisms):
            # answers of earlier formats are older
            for key in (keys[place] for keys in reversed(named)):
                stored = self._earliest(bodies.get(key, ()), key, mechanism)
                if stored is not None:
                    first[place] = stored
                    break
        return first

    def _earliest(
        self,
        bodies: Iterable[bytes],
        key: str,
        mechanism: Mechanism,
    ) -> Stored | None:
        """The part with a key, from the first of several answers in which it is exact enough."""
        for body in bodies:
            if self._fits(body, key, mechanism):
                return _part(body, key)
        return None

    def _fits(
        self,
        body: bytes,
        key: str,
        mechanism: Mechanism,
    ) -> bool:
        law = self._law(body, key)
        return law is not None and is_as_exact(law, mechanism)

    def _law(self, body: bytes, key: str) -> Released | None:
        """A released part of an answer without its numbers, cached."""
        name = hashlib.sha256(body).digest(), key
        if name in (laws := self._laws):
            return laws[name]
        part = _part(body, key)
        law = None if part is None else replace(part.released, values=(), copies=())
        # a new dictionary: another thread may be reading the old one
        self._laws = {name: law} if len(laws) >= _REMEMBERED else laws
        self._laws[name] = law
        return law


def reuse(asked: Asked, shelf: Shelf) -> Asked:
    """Returns the question with the aggregates marked that earlier answers released exactly enough;
    they are not charged.

    The earliest release is used, so that the same question keeps the same answer.

    Guarantees:
        a stored part has no more noise than was asked for
        a part under other bounds is not reused
    """
    planned = asked.planned
    stored = shelf.first(asked)
    if not stored:
        return asked
    notes = list(planned.notes)
    for place, part in stored.items():
        name = planned.parts[place].aggregate.title
        charge = f"charge {part.charge[:12]}"
        notes.append(f"{name} was released before ({charge}) and is read again, at no cost.")
    return replace(asked, planned=replace(planned, stored=stored, notes=tuple(notes)))


def is_as_exact(released: Released, mechanism: Mechanism) -> bool:
    """Whether a release has no more noise than a mechanism would add."""
    if isinstance(mechanism, GridQuantiles):
        return released.noise is None and all(
            one >= other for one, other in zip(released.rates, mechanism.rates, strict=True)
        )
    if not isinstance(mechanism, AdditiveMechanism) or released.noise is None:
        return False
    return _is_narrower(released.noise, mechanism.noise)


def is_no_noisier(one: Mechanism, other: Mechanism) -> bool:
    """Returns whether a release through the mechanism ``one`` has at most as much noise as through
    ``other``.
    """
    if isinstance(one, GridQuantiles) and isinstance(other, GridQuantiles):
        return all(mine >= wanted for mine, wanted in zip(one.rates, other.rates, strict=True))
    if isinstance(one, AdditiveMechanism) and isinstance(other, AdditiveMechanism):
        return _is_narrower(one.noise, other.noise)
    return False


def _is_narrower(noise: Noise, other: Noise) -> bool:
    """Whether a noise law is of the same family as another one and has no larger scale."""
    for law in (noise, other):
        if not isinstance(law, Noise):
            raise unknown(law)
    match noise, other:
        case DiscreteLaplace(scale), DiscreteLaplace(wanted):
            return scale <= wanted
        case DiscreteGaussian(), DiscreteGaussian():
            return noise.sigma_squared <= other.sigma_squared
        case _:
            return False


def _part(body: bytes, key: str) -> Stored | None:
    """The part of an answer with this key, by the answer's own list of part keys."""
    form = load_body(body)
    keys = cast(list[Json], form.get("parts", []))
    if key not in keys:
        return None
    parts = cast(list[Json], cast(dict[str, Json], form["released"])["parts"])
    (released,) = parts_from_json([parts[keys.index(key)]])
    return Stored(str(form["charge_id"]), released)
