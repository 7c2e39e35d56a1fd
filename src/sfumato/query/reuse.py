# SPDX-License-Identifier: Apache-2.0
"""Parts of a question that earlier answers have released: read again, at no cost. Proof: reuse.proof.md."""

from dataclasses import replace
from typing import cast

from sfumato.ledger.spend import Ledger
from sfumato.mechanisms.additive import AdditiveMechanism
from sfumato.mechanisms.grid import GridQuantiles
from sfumato.noise import DiscreteGaussian, DiscreteLaplace, Noise
from sfumato.plan.show import title
from sfumato.privacy.event import Json
from sfumato.query.answer import Answer
from sfumato.query.choose import Mechanism, Stored
from sfumato.query.estimate import Released
from sfumato.query.release import Asked
from sfumato.query.table import parts_from_json


def reuse(asked: Asked, ledger: Ledger) -> Asked:
    """The same question with every part that is stored already, at least as exact as it would be bought.

    Of several the earliest, so that the same question goes on to have the same answer.

    Guarantees:
        a stored part has no more noise than was asked for
        a part under other bounds is not reused
    """
    planned, keys = asked.planned, asked.parts
    found = ledger.released([key for key in keys if key])
    stored: dict[int, Stored] = {}
    for place, (key, mechanism) in enumerate(zip(keys, planned.mechanisms, strict=True)):
        fitting = (_part(Answer(body), key) for body in found.get(key, ()))
        first = next((each for each in fitting if each and is_as_exact(each.released, mechanism)), None)
        if first is not None:
            stored[place] = first
    notes = tuple(
        f"{title(planned.bounded.parts[place].aggregate)} was released before (charge {each.charge[:12]}) "
        "and is read again, at no cost."
        for place, each in stored.items()
    )
    if not stored:
        return asked
    return replace(asked, planned=replace(planned, stored=stored, notes=(*planned.notes, *notes)))


def is_as_exact(released: Released, mechanism: Mechanism) -> bool:
    """Whether a release has no more noise than a mechanism would add."""
    if isinstance(mechanism, GridQuantiles):
        return released.noise is None and released.rate >= mechanism.rate
    if not isinstance(mechanism, AdditiveMechanism) or released.noise is None:
        return False
    return _is_narrower(released.noise, mechanism.noise)


def _is_narrower(one: Noise, other: Noise) -> bool:
    match one, other:
        case DiscreteLaplace(scale), DiscreteLaplace(wanted):
            return scale <= wanted
        case DiscreteGaussian(), DiscreteGaussian():
            return one.sigma_squared <= other.sigma_squared
        case _:
            return False


def _part(answer: Answer, key: str) -> Stored | None:
    """The part of an answer that has a key; the answer itself says which, whatever led to it."""
    keys = cast(list[Json], answer.form.get("parts", []))
    if key not in keys:
        return None
    released = cast(dict[str, Json], answer.form["released"])
    return Stored(answer.charge_id, parts_from_json(released["parts"])[keys.index(key)])
