# SPDX-License-Identifier: Apache-2.0
"""Solves the sequence fragment puzzle: joins the fragments that devices report to strings.

Fragments of all positions with the same puzzle piece are joined to the strings that have this
piece; the sketch of whole strings then estimates how many devices hold each.
``Aggregator.discover`` uses it. Proof: puzzle.proof.md.
"""

from dataclasses import dataclass

import numpy as np

from sfumato.noise import Integers
from sfumato.telemetry.discovery import Numbers, SketchSums, require_kept, spelled
from sfumato.telemetry.domain import Words
from sfumato.telemetry.intervals import Floats
from sfumato.telemetry.oracles.fragments import PIECES, FragmentsOracle
from sfumato.telemetry.texts import TextEstimates

# Fragments with their pieces that are kept at each place, for each text that is looked for.
_EACH = 4
# Texts of one piece that are joined from place to place, and texts of all pieces at the end.
_MOST_JOINED = 4096


@dataclass(frozen=True, slots=True)
class _Joined:
    """Numbers of texts, or of what is joined of them, and the least estimate of their fragments."""

    numbers: Numbers
    least: Floats

    def best(self, count: int) -> "_Joined":
        """Those with the largest estimates."""
        order = np.argsort(-self.least, kind="stable")[:count]
        return _Joined(self.numbers[order], self.least[order])

    def chosen(self, good: "np.typing.NDArray[np.bool_]") -> "_Joined":
        """Returns some of them."""
        return _Joined(self.numbers[good], self.least[good])

    def followed_by(self, other: "_Joined", size: int) -> "_Joined":
        """Each of these with each of the others at its end, which are below ``size``."""
        numbers = self.numbers[:, None] * np.uint64(size) + other.numbers
        least = np.minimum(self.least[:, None], other.least)
        return _Joined(numbers.ravel(), least.ravel())


def joined(
    oracle: FragmentsOracle,
    domain: Words,
    tally: Integers,
    kept: int,
    confidence: str,
) -> TextEstimates:
    """Returns estimates of the strings that fit the most reported fragments, the most frequent
    first.

    The search uses the reports of fragments alone; the estimates use the sketch of whole strings,
    which has independent noise. So no string looks frequent because it was selected.

    Raises:
        WrongUse: an invalid number of kept fragments.
    """
    require_kept(kept)
    sums, whole = oracle.split(tally)
    places = []
    for place, inner in enumerate(sums):
        chance = oracle.chances[place]
        counted = SketchSums(oracle.parts[0], inner, chance)
        places.append(_frequent(oracle, place, counted, _EACH * kept))
    found = _all_of([_texts(oracle, places, piece) for piece in range(PIECES)])
    numbers = found.best(_MOST_JOINED).numbers
    counted = SketchSums(oracle.parts[1], whole)
    estimates, errors = counted.estimates(numbers)
    order = np.argsort(-estimates, kind="stable")
    texts = tuple(domain.text(number) for number in numbers[order].tolist())
    reports = int(oracle.parts[1].split(whole)[0].sum())
    return TextEstimates(texts, estimates[order], errors[order], confidence, reports)


def _frequent(
    oracle: FragmentsOracle,
    place: int,
    sums: SketchSums,
    count: int,
) -> _Joined:
    """Returns the most reported fragments of a place, with their pieces before them."""
    width = oracle.width(place)
    tails = np.arange(oracle.symbols**width, dtype=np.uint64)
    tails = tails[spelled(tails, oracle.symbols, width)]
    pieces = np.arange(PIECES, dtype=np.uint64) * np.uint64(oracle.marked(1, 0))
    tried = (pieces[:, None] + tails).ravel()
    estimates, _ = sums.estimates(tried)
    return _Joined(tried, estimates).best(count)


def _texts(oracle: FragmentsOracle, places: list[_Joined], piece: int) -> _Joined:
    """Returns the texts of one piece that its fragments make."""
    texts = _Joined(np.zeros(1, np.uint64), np.full(1, np.inf))
    whole = np.uint64(oracle.marked(1, 0))
    for place, marked in enumerate(places):
        own = marked.chosen(marked.numbers // whole == piece)
        inner = _Joined(own.numbers % whole, own.least)
        texts = texts.followed_by(inner, oracle.symbols ** oracle.width(place))
        texts = texts.best(_MOST_JOINED)
    good = spelled(texts.numbers, oracle.symbols, oracle.length)
    good &= oracle.pieces_of(texts.numbers) == piece
    return texts.chosen(good)


def _all_of(parts: list[_Joined]) -> _Joined:
    """Returns the texts of all pieces."""
    numbers = np.concatenate([part.numbers for part in parts])
    least = np.concatenate([part.least for part in parts])
    return _Joined(numbers, least)
