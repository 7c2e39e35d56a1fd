# SPDX-License-Identifier: Apache-2.0
"""Metrics of a ledger for a monitoring system: public facts only (RULES 1).

They are the number of charges and how they ended, the number of refused questions, and the age of
the newest signed head. None depends on the data, and none names an analyst, a question or an
answer.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from itertools import islice
from typing import Any

from sfumato.ledger.journal import iso_time
from sfumato.ledger.signed_heads import Head
from sfumato.ledger.spend import Ledger
from sfumato.ledger.store.base import Rows
from sfumato.ledger.tally import READS, REFUSALS, TALLY

# Entries that one transaction reads: a charge on a file waits no longer than that.
_PAGE = 5_000
_MOST_OPEN = 10_000


@dataclass(frozen=True, slots=True)
class Metrics:
    """Metrics of a ledger.

    ``kinds``: the entries of each dataset by kind (``reserve``, ``commit``, ``forfeit``, ...).
    ``refusals``: refused questions of each dataset by reason, and ``rereads``: re-reads of stored
    answers, both as far as the journal has them (``tally``). ``under_way``: charges that are
    reserved or executing, at most 10,000. ``head_age``: seconds since the newest given head was
    signed, None without one. ``size``: bytes of the ledger. ``read``: how far each chain was read,
    for the next call.
    """

    kinds: Mapping[tuple[str, str], int]
    under_way: int
    head_age: float | None
    size: int
    read: Mapping[str, int] = field(default_factory=dict, repr=False)
    refusals: Mapping[tuple[str, str], int] = field(default_factory=dict)
    rereads: Mapping[str, int] = field(default_factory=dict)

    def to_prometheus(self) -> str:
        """Returns the metrics in the text format of Prometheus and OpenMetrics."""
        rereads = [({"dataset": name}, many) for name, many in self.rereads.items()]
        lines = [
            *_counter("entries", _by_kind(self.kinds)),
            *_counter("refusals", _by_kind(self.refusals)),
            *_counter("rereads", rereads),
        ]
        gauges = [
            ("under_way", self.under_way),
            ("size_bytes", self.size),
            ("head_age_seconds", self.head_age),
        ]
        for name, value in gauges:
            if value is not None:
                lines += [f"# TYPE sfumato_ledger_{name} gauge", f"sfumato_ledger_{name} {value}"]
        return "\n".join(lines) + "\n"


def metrics(
    ledger: Ledger, before: Metrics | None = None, *, heads: Sequence[Head] = ()
) -> Metrics:
    """Returns the present metrics of a ledger.

    With ``before``, the result of an earlier call, only newer entries are read. ``heads`` are those
    kept elsewhere; the head beside a ledger file is used too.

    Guarantees:
        metrics name no analyst question or answer

    Raises:
        LedgerError: the ledger cannot be read.
    """
    counts = _Counts() if before is None else _Counts.after(before)
    for chain in ledger.store.read(lambda rows: rows.chains()):
        while page := ledger.store.read(partial(_page, chain, counts.read.get(chain, 0))):
            counts.add(chain, page)
    under_way, now = ledger.store.read(
        lambda rows: (len(rows.overdue(None, _MOST_OPEN)), iso_time(rows.now()))
    )
    signed = [_moment(head.at) for head in (*heads, *ledger.heads_beside())]
    return Metrics(
        kinds=dict(counts.kinds),
        under_way=under_way,
        head_age=_age(_moment(now), signed),
        size=ledger.store.size(),
        read=counts.read,
        refusals=dict(counts.refusals),
        rereads=dict(+counts.rereads),
    )


@dataclass(frozen=True, slots=True)
class _Counts:
    """Counts of the entries read so far; the fields are those of ``Metrics``."""

    read: dict[str, int] = field(default_factory=dict)
    kinds: Counter[tuple[str, str]] = field(default_factory=Counter)
    refusals: Counter[tuple[str, str]] = field(default_factory=Counter)
    rereads: Counter[str] = field(default_factory=Counter)

    @classmethod
    def after(cls, before: Metrics) -> "_Counts":
        """Continues the counts of an earlier call; leaves that call's result unchanged."""
        return cls(
            dict(before.read),
            Counter(before.kinds),
            Counter(before.refusals),
            Counter(before.rereads),
        )

    def add(self, chain: str, page: Sequence[tuple[int, str, str]]) -> None:
        """Counts the next entries of a chain."""
        last_number, _, _ = page[-1]
        self.read[chain] = last_number
        self.kinds.update((chain, kind) for _, kind, _ in page)
        for _, kind, body in page:
            if kind == TALLY:
                self._add_tally(chain, json.loads(body))

    def _add_tally(self, chain: str, tally: Mapping[str, Any]) -> None:
        for account in tally["accounts"].values():
            self.rereads[chain] += sum(account.get(READS, {}).values())
            for reason, many in account.get(REFUSALS, {}).items():
                self.refusals[chain, reason] += many


def _age(now: datetime, signed: Sequence[datetime]) -> float | None:
    """Seconds since the newest of the given times, at least 0; None without any."""
    if not signed:
        return None
    return max((now - max(signed)).total_seconds(), 0.0)


def _by_kind(counts: Mapping[tuple[str, str], int]) -> list[tuple[dict[str, str], int]]:
    return [({"dataset": dataset, "kind": kind}, many) for (dataset, kind), many in counts.items()]


def _counter(name: str, values: Sequence[tuple[dict[str, str], int]]) -> list[str]:
    """The lines of a labelled counter; none if it is zero everywhere."""
    lines = [f"# TYPE sfumato_ledger_{name} counter"] if values else []
    for labels, many in sorted(values, key=lambda pair: sorted(pair[0].items())):
        pairs = ",".join(
            f"{label}={json.dumps(value, ensure_ascii=False)}" for label, value in labels.items()
        )
        lines.append(f"sfumato_ledger_{name}_total{{{pairs}}} {many}")
    return lines


def _page(chain: str, after: int, rows: Rows) -> list[tuple[int, str, str]]:
    return [
        (entry.seq, entry.kind, entry.body if entry.kind == TALLY else "")
        for entry in islice(rows.entries(chain, after), _PAGE)
    ]


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)
