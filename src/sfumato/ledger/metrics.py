# SPDX-License-Identifier: Apache-2.0
"""Metrics of a ledger for a monitoring system: public facts only (RULES 1).

The number of charges and how they ended, of refused questions, and the age of the newest signed
head. None depends on the data, and none names an analyst, a question or an answer.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from itertools import islice

from sfumato.ledger.journal import iso_time
from sfumato.ledger.signed_heads import Head
from sfumato.ledger.spend import Ledger
from sfumato.ledger.store.base import Rows
from sfumato.ledger.tally import READS, REFUSALS, TALLY

# Entries that one unit of work reads: a charge on a file waits no longer than that.
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
        """The metrics in the text format of Prometheus and OpenMetrics."""
        lines = _counter(
            "entries",
            [({"dataset": name, "kind": kind}, many) for (name, kind), many in self.kinds.items()],
        )
        lines += _counter(
            "refusals",
            [
                ({"dataset": name, "kind": kind}, many)
                for (name, kind), many in self.refusals.items()
            ],
        )
        lines += _counter(
            "rereads", [({"dataset": name}, many) for name, many in self.rereads.items()]
        )
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
    """The current metrics; given those of an earlier call, reads only the entries since then.

    ``heads`` are those kept elsewhere; the one beside a ledger file is used too.

    Guarantees:
        metrics name no analyst question or answer

    Raises:
        LedgerError: the ledger cannot be read.
    """
    read: dict[str, int] = dict(before.read) if before else {}
    kinds: Counter[tuple[str, str]] = Counter(before.kinds if before else {})
    refusals: Counter[tuple[str, str]] = Counter(before.refusals if before else {})
    rereads: Counter[str] = Counter(before.rereads if before else {})
    for chain in ledger.store.read(lambda rows: rows.chains()):
        while page := ledger.store.read(partial(_page, chain, read.get(chain, 0))):
            read[chain] = page[-1][0]
            kinds.update((chain, kind) for _, kind, _ in page)
            for body in [json.loads(body) for _, kind, body in page if kind == TALLY]:
                for counts in body["accounts"].values():
                    rereads[chain] += sum(counts.get(READS, {}).values())
                    for kind, many in counts.get(REFUSALS, {}).items():
                        refusals[chain, kind] += many
    under_way, now = ledger.store.read(
        lambda rows: (len(rows.overdue(None, _MOST_OPEN)), iso_time(rows.now()))
    )
    signed = [_moment(head.at) for head in (*heads, *ledger.heads_beside())]
    age = max((_moment(now) - max(signed)).total_seconds(), 0.0) if signed else None
    size = ledger.store.size()
    return Metrics(dict(kinds), under_way, age, size, read, dict(refusals), dict(+rereads))


def _counter(name: str, values: Sequence[tuple[dict[str, str], int]]) -> list[str]:
    """The lines of a labelled counter; none if it is zero everywhere."""
    lines = [f"# TYPE sfumato_ledger_{name} counter"] if values else []
    for labels, many in sorted(values, key=lambda pair: sorted(pair[0].items())):
        told = ",".join(
            f"{label}={json.dumps(value, ensure_ascii=False)}" for label, value in labels.items()
        )
        lines.append(f"sfumato_ledger_{name}_total{{{told}}} {many}")
    return lines


def _page(chain: str, after: int, rows: Rows) -> list[tuple[int, str, str]]:
    return [
        (entry.seq, entry.kind, entry.body if entry.kind == TALLY else "")
        for entry in islice(rows.entries(chain, after), _PAGE)
    ]


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)
