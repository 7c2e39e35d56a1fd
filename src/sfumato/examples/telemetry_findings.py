# SPDX-License-Identifier: Apache-2.0
"""The estimates of ``sfumato demo telemetry``, beside the true values of the devices."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sfumato.examples.made_up_devices import (
    ABSENT_WORDS,
    EMOJI,
    HIJACKER,
    NEW_WORDS,
    PAGES,
    THIS_WEEK,
    Question,
    mean,
)
from sfumato.show.bars import Bar
from sfumato.show.render import number
from sfumato.telemetry import Aggregator, Estimates, NumberEstimate, TextEstimates

# With this probability all intervals of a week hold together.
_SURE = "0.999"
_SHOWN = 12
TRUTH, ESTIMATE = "made-up truth", "estimate"


@dataclass(frozen=True, slots=True)
class Found:
    """The telemetry demo's estimates for the four questions whose reports are not encrypted, and
    the true counts.
    """

    truth: Mapping[str, Question]
    emoji: Estimates
    texts: TextEstimates
    days: tuple[NumberEstimate, ...]
    weeks: tuple[Estimates, ...]

    @property
    def words(self) -> tuple[str, ...]:
        """The new words that were found; all of them are right with probability 0.999."""
        return tuple(self.texts.found(_SURE))

    @property
    def is_noticed(self) -> bool:
        """Whether this week's confidence interval of devices with the malware's home page lies
        wholly above that of last week.
        """
        place = PAGES.index(HIJACKER)
        before, now = self.weeks[-2], self.weeks[-1]
        return bool(now.low[place] > before.high[place])

    @property
    def lines(self) -> Iterator[str]:
        """Yields the estimates of the demo as sentences, one for each finding."""
        most = [str(label) for label, _ in self.emoji.top(6) if label in EMOJI]
        yield f"emoji: most used are {' '.join(most[:5])}"
        yield f"new words: {', '.join(self.words)}, of {len(self.texts.values)} candidates"
        today = self.days[-1]
        ends = f"[{today.low:.1f}, {today.high:.1f}]"
        yield f"corrections today: {today.estimate:.1f} a device, 95% interval {ends}"
        place = PAGES.index(HIJACKER)
        for name, found in (("last week", self.weeks[-2]), ("this week", self.weeks[-1])):
            low, high = number(round(found.low[place])), number(round(found.high[place]))
            yield f"{HIJACKER} {name}: 99.9% interval [{low}, {high}] devices"
        yield f"a hijacked home page is noticed in its week: {self.is_noticed}"

    def emoji_bars(self) -> list[Bar]:
        """Returns bars of a chart for the first emoji of the list: the true number of devices
        beside the estimate.
        """
        truth = self.truth["emoji"].truth[0]
        found = self.emoji.to_dicts()[:_SHOWN]
        return list(_pairs((str(row["value"]), truth[row["value"]], row) for row in found))

    def word_bars(self) -> list[Bar]:
        """Returns bars of a chart for the new words, and for the absent words with the largest
        estimates: true count beside estimate.
        """
        rows = sorted(self.texts.to_arrow().to_pylist(), key=lambda row: -row["estimate"])
        top = rows[: len(NEW_WORDS) + 4]
        return list(_pairs((row["value"], NEW_WORDS.get(row["value"], 0), row) for row in top))

    def day_bars(self) -> list[Bar]:
        """Returns bars of a chart for the mean number of corrections on each day: true mean beside
        estimate.
        """
        bars = []
        truth = self.truth["corrections"].truth
        for day, found in enumerate(self.days):
            label = f"day {day + 1}"
            true = mean(truth[day])
            bars.append(Bar(label, TRUTH, true, None, None))
            bars.append(Bar(label, ESTIMATE, found.estimate, found.low, found.high))
        return bars

    def week_bars(self) -> list[Bar]:
        """Returns bars of a chart for the devices with the malware's home page, week by week: true
        count beside estimate.
        """
        truth, place = self.truth["home-page"].truth, PAGES.index(HIJACKER)
        pairs = []
        for week, found in enumerate(self.weeks):
            pairs.append((f"week {week + 1}", truth[week][HIJACKER], found.to_dicts()[place]))
        return list(_pairs(iter(pairs)))


def _pairs(rows: Iterator[tuple[str, int, Mapping[str, object]]]) -> Iterator[Bar]:
    """Two bars for each row: the true value and the estimate."""
    for label, true, row in rows:
        estimate, low, high = (float(str(row[name])) for name in ("estimate", "low", "high"))
        yield Bar(label, TRUTH, true, None, None)
        yield Bar(label, ESTIMATE, estimate, low, high)


def find(asked: Sequence[Question], sums: Mapping[str, Mapping[int, Aggregator]]) -> Found:
    """Returns the estimates of all demo questions, computed from the aggregated reports in ``sums``
    (by task id and period).
    """
    pages = sums["home-page"]
    weeks = []
    for week in range(THIS_WEEK + 1):
        weeks.append(pages[week].estimate(PAGES, confidence=_SURE, simultaneous=True))
    return Found(
        {question.task.id: question for question in asked},
        sums["emoji"][0].estimate([*EMOJI, "(other)"]),
        sums["words"][0].texts([*NEW_WORDS, *ABSENT_WORDS]),
        tuple(each.mean() for each in sums["corrections"].values()),
        tuple(weeks),
    )
