# SPDX-License-Identifier: Apache-2.0
"""The made-up devices of ``sfumato demo telemetry``: the questions, and the true values."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise, product
from typing import TypeAlias

from sfumato.metadata.column import Integer
from sfumato.telemetry import ReportTask, Texts, oracles, report_task
from sfumato.telemetry.keys import PublicKey

# Devices of each question; of these, reports that each of two senders sends.
DEVICES, SENT = 250_000, 12_500
# Devices whose reports are sealed; half of them are of each sender.
SEALED = 1_200
Counts: TypeAlias = Mapping[object, int]
HOUR, DAY, WEEK = 3_600, 86_400, 604_800
# The present day and week, from 0; what came before is simulated.
TODAY, THIS_WEEK = 6, 5
MOST_CORRECTIONS = 200

EMOJI = (
    "😂", "🤣", "👍", "😭", "🙏", "😘", "🥰", "😍", "😊", "🎉", "😁", "💕", "🥺", "😅", "🔥", "🤦",
    "🤷", "🙄", "😆", "🤗", "😉", "🎂", "🤔", "👏", "🙂", "😳", "🥳", "😎", "👌", "💜", "😔", "💪",
)  # fmt: skip
NEW_WORDS = {"snoozle": 40_000, "blorbit": 26_000, "zindle": 17_000}
# Found on the web, typed by nobody.
ABSENT_WORDS = tuple(
    start + end
    for start, end in product(
        ("fro", "gli", "pla", "sku", "tre", "wub"),
        ("bble", "ckle", "dgen", "mpish", "nster", "ppo", "rtle", "zzy"),
    )
)
HIJACKER = "quick-find.example"
PAGES = ("search.example", "news.example", "mail.example", "shop.example", HIJACKER)
# Mean corrections of each day; from the fifth on the weekend, and a new dictionary.
CORRECTIONS = (34, 33, 35, 33, 25, 24, 21)
DARK: Counts = {"yes": 720, "no": 480}


@dataclass(frozen=True, slots=True)
class Question:
    """A telemetry task, and the true number of devices with each value, by period."""

    task: ReportTask
    truth: Mapping[int, Counts]

    @property
    def period(self) -> int:
        """The number of the current period."""
        return max(self.truth)

    @property
    def is_number(self) -> bool:
        """Whether the values of devices are numbers."""
        return self.task.domain.kind == "lattice"


def questions(now: int, aggregator: PublicKey) -> tuple[Question, ...]:
    """Returns the five telemetry questions of the demo as of the time ``now`` (in seconds); the
    reports of the first one are encrypted for ``aggregator``.
    """
    begun = now - HOUR
    emoji = report_task(
        "emoji", "Which emoji did you use last?", EMOJI, epsilon=1, start=begun, periods=1
    )
    words = report_task(
        "words", "Which new word did you type?", Texts(), oracle=oracles.rappor(),
        start=begun, periods=7, memory=7,
    )  # fmt: skip
    corrections = report_task(
        "corrections", "How often did the keyboard correct you today?",
        Integer(0, MOST_CORRECTIONS), oracle=oracles.mean(MOST_CORRECTIONS + 1, "0.5"),
        start=begun - TODAY * DAY, periods=7,
    )  # fmt: skip
    pages = report_task(
        "home-page", "Which home page does the browser have?", PAGES, epsilon=1,
        start=begun - THIS_WEEK * WEEK, period=WEEK, periods=8,
    )  # fmt: skip
    dark = report_task(
        "dark-mode", "Is dark mode on?", ["yes", "no"], epsilon=2, start=begun, periods=1,
        min_batch=SEALED, aggregator=aggregator,
    )  # fmt: skip
    return (
        Question(dark, {0: DARK}),
        Question(emoji, {0: _emoji()}),
        Question(words, {0: _words()}),
        Question(corrections, dict(enumerate(map(_corrections, CORRECTIONS)))),
        Question(pages, {week: _pages(week) for week in range(THIS_WEEK + 1)}),
    )


def _words() -> Counts:
    """Three frequent new words, and a thousand rare ones that are not candidates."""
    counts: dict[object, int] = {}
    for word, count in NEW_WORDS.items():
        counts[word] = count
    for place in range(1000):
        counts[f"rare word {place}"] = 167
    return counts


def _emoji() -> Counts:
    """How many devices used each emoji last; some used others, which are not in the list."""
    weights = {emoji: 1 / (rank + 3) for rank, emoji in enumerate(EMOJI)}
    return _scaled(weights | {"(other)": 0.5})


def _pages(week: int) -> Counts:
    """The home pages of a week; this week malware has replaced one in twelve."""
    moved = 0.083 if week == THIS_WEEK else 0.001
    usual = {"search.example": 0.55, "news.example": 0.2, "mail.example": 0.12}
    weights = {page: share * (1 - moved) for page, share in usual.items()}
    return _scaled(weights | {"shop.example": 0.03, "(other)": 0.1, HIJACKER: moved})


def _corrections(mean: int) -> Counts:
    """How many devices have each number of corrections: geometric, cut at the largest number."""
    weights = {n: math.exp(-n / mean) for n in range(MOST_CORRECTIONS + 1)}
    return _scaled(weights)


def _scaled(weights: Mapping[str, float] | Mapping[int, float]) -> Counts:
    """Counts in proportion to weights; they add up to the number of all devices."""
    parts = list(weights.values())
    whole = sum(parts)
    below, ends = 0.0, [0]
    for part in parts:
        below += part
        ends.append(round(DEVICES * below / whole))
    counts = [end - start for start, end in pairwise(ends)]
    return dict(zip(weights, counts, strict=True))


def drawn(counts: Counts, total: int) -> Counts:
    """Returns counts by value of ``total`` devices, distributed as the devices in ``counts``.

    >>> drawn({"a": 5, "b": 3}, 4)
    {'a': 2, 'b': 2}
    """
    devices = sum(counts.values())
    drawn_counts: dict[object, int] = {}
    before = 0
    for value, count in counts.items():
        start, before = before, before + count
        drawn_counts[value] = before * total // devices - start * total // devices
    return drawn_counts


def left(counts: Counts, *taken: Counts) -> Counts:
    """Returns counts of devices by value, minus the counts of the devices that other clients report
    for (``taken``).

    >>> left({"a": 5, "b": 3}, {"a": 2, "b": 2}, {"a": 1, "b": 0})
    {'a': 2, 'b': 1}
    """
    found = dict(counts)
    for part in taken:
        for value, count in part.items():
            found[value] -= count
    return found


def mean(counts: Counts) -> float:
    """Returns the mean of numeric values, given the number of devices with each value.

    >>> mean({1: 3, 5: 1})
    2.0
    """
    total = sum(int(str(value)) * count for value, count in counts.items())
    return total / sum(counts.values())
