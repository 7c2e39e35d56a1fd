# SPDX-License-Identifier: Apache-2.0
"""What the reports of a task say, in lines."""

from collections.abc import Iterator, Sequence

from sfumato.errors import WrongUse
from sfumato.query.render import number, text_table
from sfumato.telemetry import (
    Aggregator,
    Estimates,
    NumberEstimate,
    Record,
    TextEstimates,
    Texts,
)
from sfumato.telemetry.oracles.levels import LevelsOracle
from sfumato.telemetry.oracles.mean import MeanOracle

_HEADER = ("value", "estimate", "95% interval", "p-value of absent")
_QUANTILES = ("0.25", "0.5", "0.75")


def estimated(sums: Aggregator, top: int, texts: Sequence[str] | None = None) -> Iterator[str]:
    """What the sums say, by the kind of the task; ``texts`` are candidates where none is listed.

    Raises:
        WrongUse: a task about texts, and no candidates.
    """
    oracle, domain = sums.task.oracle, sums.task.domain
    if isinstance(oracle, MeanOracle):
        yield f"mean {_interval(sums.mean())}"
    elif isinstance(oracle, LevelsOracle):
        found = sums.distribution()
        for level in _QUANTILES:
            yield f"quantile {level}: {_interval(found.quantile(level))}"
    elif isinstance(domain, Record):
        for name in domain.names:
            yield f"attribute {name}"
            yield _table(sums.attribute(name), top)
    elif isinstance(domain, Texts):
        if texts is None:
            raise WrongUse("Texts that nobody listed.", remedy="--candidates words.txt")
        yield _table(sums.texts(texts), top)
    else:
        yield _table(sums.estimate(), top)


def _table(found: Estimates | TextEstimates, top: int) -> str:
    """The largest estimates with their intervals."""
    listed = found.to_arrow().to_pylist()
    ordered = sorted(listed, key=lambda row: -row["estimate"])
    rows = []
    for row in ordered[:top]:
        estimate, low, high = (number(round(row[name])) for name in ("estimate", "low", "high"))
        rows.append([str(row["value"]), estimate, f"[{low}, {high}]", f"{row['p_value']:.2g}"])
    return text_table(_HEADER, rows, top)


def _interval(found: NumberEstimate) -> str:
    """A number with its interval."""
    return f"{found.estimate:,.6g}, 95% interval [{found.low:,.6g}, {found.high:,.6g}]"
