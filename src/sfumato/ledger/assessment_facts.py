# SPDX-License-Identifier: Apache-2.0
"""The facts of an assessment and their sources: declarations, charges, entries; never rows."""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sfumato.accounting.interpret import Attacker
from sfumato.exact.rational import decimal_text
from sfumato.ledger.account_path import UNSTATED, Scope
from sfumato.ledger.assessment_picture import MANY_EPSILON
from sfumato.ledger.report import (
    budget_text,
    cost_text,
    delta_of_all_periods,
    limit_in_words,
    spent_in_all_periods,
    unit_names,
)
from sfumato.ledger.report_text import LANGUAGES
from sfumato.ledger.spend import Ledger
from sfumato.ledger.store.base import COMMITTED, FORFEITED, Rows
from sfumato.ledger.summary import Summary
from sfumato.metadata.column import Date, Integer, Real
from sfumato.metadata.dataset import Dataset
from sfumato.metadata.timestamp import Timestamp
from sfumato.privacy import ApproxDP, PureDP

# Beyond it no attacker is bounded usefully, and e^epsilon is a long number.
_MOST_EPSILON = 20
_BOUNDED = Integer | Real | Date | Timestamp

Texts = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact in an assessment document, and its source (a key of ``[sources]`` in the layouts)."""

    value: str
    source: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """The inputs of an assessment: the dataset's history, declarations, mechanisms and audit.

    ``audit`` is the saved JSON of ``sfumato audit system``.

    ``mechanisms`` are the names of the noise and of the selections in all charges.
    """

    history: Summary
    dataset: Dataset
    mechanisms: tuple[str, ...]
    has_heads: bool
    audit: Mapping[str, Any] | None = None


def mechanisms_of(ledger: Ledger, dataset: str) -> tuple[str, ...]:
    """Returns the sorted names of the noise distributions and selections in a dataset's charges."""
    root = Scope(dataset).id

    def collect(rows: Rows) -> tuple[str, ...]:
        names = set[str]()
        for charge, _ in rows.history():
            if charge.dataset != root or charge.state not in (COMMITTED, FORFEITED):
                continue
            entry = rows.entry(charge.chain, charge.seq)
            if entry is not None:
                names.update(_names(json.loads(entry.body).get("event")))
        return tuple(sorted(names))

    return ledger.store.read(collect)


def _names(form: object) -> Iterator[str]:
    """Yields the laws in an event's JSON, and the kinds of events that contain neither."""
    if isinstance(form, list):
        for part in form:
            yield from _names(part)
    elif isinstance(form, dict):
        below = [name for part in form.values() for name in _names(part)]
        if "law" in form:
            below.append(str(form["law"]))
        elif not below and "kind" in form:
            below.append(str(form["kind"]))
        for name in below:
            yield name.replace("_", " ")


def facts_of(evidence: Evidence, texts: Texts, language: str) -> dict[str, Fact]:
    """Returns the facts of an assessment, by their keys in its layout, in a language."""
    at = list(LANGUAGES).index(language)
    words = {name: both[at] for name, both in texts["words"].items()}
    facts = {
        **_declared(evidence, words, language),
        **_charged(evidence.history, language),
        **_attacked(evidence.history, words),
        "mechanisms": Fact(", ".join(evidence.mechanisms), "charge"),
    }
    audit = evidence.audit
    if audit is not None:
        line = words["audit"].format(
            verdict=audit["verdict"], pairs=audit["pairs"], forms=len(audit["forms"])
        )
        facts["audit"] = Fact(line, "audit")
    else:
        facts["audit"] = Fact("", "audit")
    return {
        key: fact if fact.value else Fact(words["none"], fact.source) for key, fact in facts.items()
    }


def _declared(evidence: Evidence, words: Mapping[str, str], language: str) -> dict[str, Fact]:
    history, dataset = evidence.history, evidence.dataset
    tables, columns, bounds, public, sizes = [], [], [], [], []
    for name, table in dataset.tables.items():
        size = words["no-size"] if table.size is None else words["rows"].format(size=table.size)
        tables.append(f"{name} ({size})")
        columns += [f"{name}.{column}" for column in table.columns]
        if table.public:
            public.append(name)
        elif table.size is not None:
            sizes.append(f"{name}: {table.size}")
        for column, kind in table.columns.items():
            if isinstance(kind, _BOUNDED):
                bounds.append(f"{name}.{column} {kind!r}")
    values = {
        "dataset": dataset.name,
        "tables": ", ".join(tables),
        "columns": ", ".join(columns),
        "bounds": "; ".join(bounds),
        "public": ", ".join(public),
        "sizes": ", ".join(sizes),
        "unit": unit_names(history, LANGUAGES[language]),
        "neighbours": LANGUAGES[language][str(history.contract["relation"])],
    }
    return {key: Fact(value, "declaration") for key, value in values.items()}


def _charged(history: Summary, language: str) -> dict[str, Fact]:
    words, root = LANGUAGES[language], history.standings[0]
    assert root.limit is not None, "a dataset has a limit"
    delta = delta_of_all_periods(root, root.limit.delta)
    purposes = {standing.scope.purpose for standing in history.standings} - {""}
    names = [words["unstated"] if name == UNSTATED else name for name in sorted(purposes)]
    refused = sum(sum(kinds.values()) for kinds in history.refusals.values())
    charges = {
        "spent": cost_text(spent_in_all_periods(root), words, delta),
        "charges": str(history.charges),
    }
    entries = {
        "lifetime": budget_text(history.bound),
        "meaning": limit_in_words(history.bound, words),
        "periods": str(len(root.earlier) + 1),
        "accounts": str(history.accounts),
        "purposes": ", ".join(names),
        "refusals": str(refused),
        "entries": str(history.report.entries),
        "head": history.report.head,
    }
    facts = {key: Fact(value, "charge") for key, value in charges.items()}
    return facts | {key: Fact(value, "entry") for key, value in entries.items()}


def _attacked(history: Summary, words: Mapping[str, str]) -> dict[str, Fact]:
    """Returns the bounds of the best attacker, rounded in his favour."""
    bound = history.bound
    if bound.epsilon > _MOST_EPSILON:
        unknown = Fact(words["nothing-known"], "computed")
        return dict.fromkeys(("detected", "guessed", "believed", "failure"), unknown)
    pure = bound.delta == 0
    attacker = Attacker(PureDP(bound.epsilon) if pure else ApproxDP(bound.epsilon, bound.delta))
    failure = min(10 * bound.delta, Fraction(1))
    values = {
        "detected": _share_up(1 - Fraction(attacker.misses("0.01"))),
        "guessed": _share_up(Fraction(attacker.accuracy("0.5"))),
        "believed": _share_up(Fraction(attacker.posterior("0.1", failure).highest)),
        "failure": decimal_text(failure),
    }
    return {key: Fact(value, "computed") for key, value in values.items()}


def _share_up(share: Fraction) -> str:
    """Returns a share as a percentage with two decimals, rounded up."""
    hundredths = math.ceil(min(share, Fraction(1)) * 10_000)
    return f"{decimal_text(Fraction(hundredths, 100))}%"


def warnings_of(evidence: Evidence) -> Iterator[tuple[str, str]]:
    """Yields the keys of an assessment's warnings that apply, each with its value."""
    history, root = evidence.history, evidence.history.standings[0]
    tables = evidence.dataset.tables
    private = {name: table for name, table in tables.items() if not table.public}
    sizes = [table.size for table in private.values() if table.size is not None]
    if evidence.audit is not None and evidence.audit["verdict"] == "VIOLATED":
        yield "violated", ""
    if history.bound.epsilon > MANY_EPSILON:
        yield "epsilon", decimal_text(history.bound.epsilon)
    if sizes and history.bound.delta >= Fraction(1, min(sizes)):
        yield "delta", decimal_text(history.bound.delta)
    unsized = [name for name, table in private.items() if table.size is None]
    if unsized:
        yield "size", ", ".join(unsized)
    rows = [name for name, unit in history.contract["units"].items() if unit == "(row)"]
    if rows:
        yield "row", ", ".join(rows)
    if root.earlier:
        yield "refreshed", str(len(root.earlier) + 1)
    if not root.frozen:
        yield "open", ""
    paid = [account for account, count in history.paid.items() if count]
    if any(Scope.of(account).purpose == UNSTATED for account in paid):
        yield "unstated", ""
    if not evidence.has_heads:
        yield "head", ""
