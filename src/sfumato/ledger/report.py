# SPDX-License-Identifier: Apache-2.0
"""The report page for a compliance officer: self-contained HTML, no script, everything escaped."""

import ast
import html
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import reduce
from operator import add
from typing import Any

from sfumato.accounting.budget_gates import NOTHING, Charge
from sfumato.errors import WrongUse
from sfumato.exact.rational import decimal_text
from sfumato.exact.rounding import exp_up
from sfumato.ledger.account_path import UNSTATED
from sfumato.ledger.account_status import Standing
from sfumato.ledger.balance import delta_text, increments_text
from sfumato.ledger.planned_epsilon import planned_epsilon
from sfumato.ledger.report_text import LANGUAGES
from sfumato.ledger.request import SQL
from sfumato.ledger.store.base import FORFEITED, SUSPENDED
from sfumato.ledger.summary import Act, Released, Summary
from sfumato.privacy.budget import Budget
from sfumato.show import page as show

# The largest epsilon for which e^epsilon is written as a decimal.
_READABLE = 20

# Policies that are on or off, and those that the owner states once.
_SWITCHES = ("sharing", "closed")
_SAYINGS = {"without_heads": "without-heads", "other_people": "other-people"}
# Accounts listed with their re-reads and refusals.
_MOST_NAMED = 40

Words = Mapping[str, str]


def page(history: Summary, language: str = "en") -> str:
    """Returns the report of a dataset's history as an HTML page, in a language ("en" or "zh").

    Raises:
        WrongUse: there is no report in this language.
    """
    words = LANGUAGES.get(language)
    if words is None:
        raise WrongUse(f"language={language!r}.", allowed=" or ".join(LANGUAGES))
    title = _say(words, "title", dataset=str(history.contract["dataset"]))
    parts = (_promise, _accounts, _releases, _asked_again, _acts, _checked)
    body = "".join(f"<section>{part(history, words)}</section>" for part in parts)
    head = f"<h1>{title}</h1><p>{words['intro']}</p>"
    foot = f"<footer>{html.escape(history.at)}</footer>"
    return show.page(html.unescape(title), head + body + foot, language=words["lang"])


def _promise(history: Summary, words: Words) -> str:
    root = history.standings[0]
    assert root.limit is not None, "a dataset has a limit"
    relation = words[str(history.contract["relation"])]
    lines = [
        _say(words, "protected", unit=unit_names(history, words), relation=relation),
        limit_in_words(history.bound, words),
        *_amounts(history, words),
    ]
    lines.append(_say(words, "left", left=_left(root) or words["nothing"]))
    if root.sharing:
        lines.append(words["sharing"])
    if root.frozen:
        lines.append(f"<strong>{_say(words, 'frozen', reason=root.frozen)}</strong>")
    return f"<h2>{words['promise']}</h2>{_gauge(root)}{_paragraphs(lines)}"


def _amounts(history: Summary, words: Words) -> list[str]:
    """Returns what the dataset has spent and reserved, and in how many periods, in words."""
    root, delta, lines = history.standings[0], _delta(history), list[str]()
    assert root.limit is not None, "a dataset has a limit"
    if root.earlier:
        periods = str(len(root.earlier) + 1)
        lines.append(_say(words, "lifetime", periods=periods, limit=budget_text(root.limit)))
        before = cost_text(spent_in_all_periods(root), words, delta_of_all_periods(root, delta))
        lines.append(_say(words, "spent-before", spent=before))
    elif history.bound != root.limit:
        lines.append(_say(words, "lowered", limit=budget_text(root.limit)))
    lines.append(_say(words, "spent", spent=cost_text(root.spent, words, delta)))
    if spent_in_all_periods(root).epsilon is None:
        lines.append(words["planned"])
    if root.reserved != NOTHING:
        lines.append(_say(words, "reserved", reserved=cost_text(root.reserved, words, delta)))
    return lines


def unit_names(history: Summary, words: Words) -> str:
    """Returns a text that names the privacy units of a dataset's private tables."""
    owners = set(history.contract["units"].values()) - {"(public)"}
    names = {"(row)": words["row"]}
    return " / ".join(
        names.get(owner) or words["units"].format(column=_column(owner)) for owner in sorted(owners)
    )


def _paragraphs(lines: Iterable[str]) -> str:
    return "".join(f"<p>{line}</p>" for line in lines)


def limit_in_words(limit: Budget, words: Words) -> str:
    factor = f"e^{decimal_text(limit.epsilon)}"
    if limit.epsilon <= _READABLE:
        # rounded up, so that the protection is never overstated
        hundredths = -(-(exp_up(limit.epsilon) * 100) // 1)
        factor = decimal_text(Fraction(hundredths, 100))
    kind = "delta" if limit.delta else "pure"
    return _say(
        words,
        kind,
        epsilon=decimal_text(limit.epsilon),
        delta=decimal_text(limit.delta),
        factor=factor,
    )


def _gauge(root: Standing) -> str:
    """The share of the limit that is used, at the gate with more left."""
    assert root.limit is not None, "a dataset has a limit"
    left = min(root.left.epsilon / root.limit.epsilon, Fraction(1))
    return f'<div class="gauge"><i style="width:{float(1 - left) * 100:.1f}%"></i></div>'


def _column(unit: str) -> str:
    """The columns of a privacy unit, for people; several columns, or a path to them, are stored as
    a tuple.
    """
    if not unit.startswith(("(", "[")):
        return unit
    try:
        parts = ast.literal_eval(unit)
    except (ValueError, SyntaxError):
        return unit
    if not isinstance(parts, tuple | list):
        return unit
    return ", ".join(map(str, parts))


def spent_in_all_periods(standing: Standing) -> Charge:
    """Returns the sum of what an account has spent in all its periods."""
    return reduce(add, (period.spent for period in standing.earlier), standing.spent)


def delta_of_all_periods(standing: Standing, delta: Fraction) -> Fraction:
    """Returns the sum of the deltas of an account's limits in all periods.

    ``delta`` stands for a period without one.
    """
    return delta if standing.lifetime is None else standing.lifetime[1]


def _accounts(history: Summary, words: Words) -> str:
    rows = [_account(standing, history, words) for standing in history.standings]
    names = ("account", "limit", "used", "used-in-all", "reserved-now", "charges", "state")
    header = [words[name] for name in names]
    notes: list[str] = []
    if history.shared:
        notes.append(words["shared-note"].format(count=history.shared))
    if len(rows) < history.accounts:
        notes.append(words["accounts-note"].format(shown=len(rows), all=history.accounts))
    return f"<h2>{words['accounts']}</h2>{_paragraphs(notes)}{_table(header, rows)}"


def _account(standing: Standing, history: Summary, words: Words) -> tuple[str, ...]:
    """The cells of an account's row, indented by its depth."""
    depth, delta = len(standing.scope.parts) - 1, _delta(history)
    name = standing.scope.parts[-1]
    if depth == 0:
        name = words["whole"]
    elif depth == 1 and name == UNSTATED:
        name = words["unstated"]
    return (
        "\u2003" * depth + name,
        budget_text(standing.limit) if standing.limit else words["bounded"],
        cost_text(standing.spent, words, delta),
        cost_text(
            spent_in_all_periods(standing), words, delta_of_all_periods(history.standings[0], delta)
        ),
        cost_text(standing.reserved, words, delta) if standing.reserved != NOTHING else "",
        str(history.paid.get(standing.scope.id, 0)),
        words["closed"] if standing.frozen else words["open"],
    )


def _releases(history: Summary, words: Words) -> str:
    rows = [_release(question, words, _delta(history)) for question in history.released]
    header = [words[name] for name in ("when", "who", "why", "what", "cost")]
    note = words["released-note"].format(shown=len(rows), all=history.charges)
    return f"<h2>{words['released']}</h2><p>{note}</p>{_table(header, rows)}"


def _release(question: Released, words: Words, delta: Fraction) -> tuple[str, ...]:
    purpose = question.scope.purpose
    return (
        _time(question.at),
        question.scope.analyst,
        words["unstated"] if purpose == UNSTATED else purpose,
        _what(question, words),
        cost_text(question.cost, words, delta),
    )


def _what(question: Released, words: Words) -> str:
    """The question, and what became of its answer."""
    parts = [question.statement or words["no-statement"]]
    if question.kind != SQL:
        parts[0] = f"{question.kind}: {parts[0]}"
    if question.places is not None:
        begun, places, lost = question.places
        parts.append(words["in-pieces"].format(begun=begun, places=places))
        if lost:
            parts.append(words["not-stored"].format(lost=lost))
        if question.state == SUSPENDED:
            parts.append(words["suspended"])
    elif question.state == FORFEITED:
        parts = [words[FORFEITED]]
    if question.shared:
        parts.append(words["given-again"])
    return " ".join(parts)


def _time(at: str) -> str:
    """A stored time to the second, for reading."""
    return at[:19].replace("T", " ")


def _acts(history: Summary, words: Words) -> str:
    rows = [
        (
            _time(act.at),
            act.account,
            str(act.body.get("actor") or words["unrecorded"]),
            _act(act, words),
            str(act.body.get("reason", "")),
        )
        for act in history.acts
    ]
    header = [words[name] for name in ("when", "account", "by", "acts", "reason")]
    return f"<h2>{words['acts']}</h2>{_table(header, rows)}"


def _asked_again(history: Summary, words: Words) -> str:
    reads = history.rereads
    refused = {account: sum(kinds.values()) for account, kinds in history.refusals.items()}

    def most_first(account: str) -> tuple[int, str]:
        return -reads.get(account, 0) - refused.get(account, 0), account

    accounts = sorted({*reads, *refused}, key=most_first)
    rows: list[tuple[str, ...]] = []
    for account in accounts[:_MOST_NAMED]:
        reasons = _refused(history.refusals.get(account, {}), words)
        rows.append((account, str(reads.get(account, 0)), reasons))
    totals = {"reads": sum(reads.values()), "refusals": sum(refused.values())}
    notes = [words["asked-again-note"].format(**totals)]
    if len(rows) < len(accounts):
        notes.append(words["asked-again-shown"].format(shown=len(rows), all=len(accounts)))
    header = [words[name] for name in ("account", "rereads", "refusals")]
    section = f"<h2>{words['asked-again']}</h2>{_paragraphs(notes)}"
    if rows:
        section += _table(header, rows)
    return section


def _refused(kinds: Mapping[str, int], words: Words) -> str:
    """The number of refused questions, by reason."""
    counts = [(-many, words.get(f"refused-{kind}", kind)) for kind, many in kinds.items()]
    return " / ".join(f"{reason}: {-negated}" for negated, reason in sorted(counts))


def _act(act: Act, words: Words) -> str:
    kind = _policy(act.body) if act.kind == "policy" else act.kind
    limit = words["no-limit"]
    form = act.body.get("limit") or act.body.get("contract")
    if form:
        limit = budget_text(Budget(form["epsilon"], form["delta"]))
    return words[f"act-{kind}"].format(
        limit=limit,
        silence=act.body.get("without_heads", ""),
        failures=act.body.get("failures", 0),
        place=act.body.get("to") or act.body.get("from", ""),
    )


def _policy(body: Mapping[str, Any]) -> str:
    """The name of a policy that was set."""
    for name, statement in _SAYINGS.items():
        if name in body:
            return statement
    for name in _SWITCHES:
        if name in body:
            return f"{name}-on" if body[name] else f"{name}-off"
    return "policy"


def _checked(history: Summary, words: Words) -> str:
    report = history.report
    if report.problems:
        line = _say(words, "unsound", count=str(len(report.problems)), first=report.problems[0])
        verdict = f'<p class="bad">{line}</p>'
    else:
        verdict = f"<p>{_say(words, 'sound', entries=f'{report.entries:,}')}</p>"
    return (
        f"<h2>{words['checked']}</h2>{verdict}<p>{words['head']} "
        f"<code>{html.escape(report.head)}</code></p>"
    )


def _say(words: Words, key: str, **values: str) -> str:
    """A sentence with its values, escaped: they may contain names of people."""
    escaped = {name: html.escape(value) for name, value in values.items()}
    return words[key].format(**escaped)


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = _row("th", header)
    body = "".join(_row("td", row) for row in rows)
    return f'<table class="log"><thead>{head}</thead><tbody>{body}</tbody></table>'


def _row(tag: str, cells: Iterable[str]) -> str:
    inner = "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells)
    return f"<tr>{inner}</tr>"


def _delta(history: Summary) -> Fraction:
    """The delta of the limit of the dataset."""
    limit = history.standings[0].limit
    return Fraction(0) if limit is None else limit.delta


def cost_text(charge: Charge, words: Words, delta: Fraction) -> str:
    """Returns a sum of charges in words; with its epsilon at ``delta`` if only its rho is
    bounded.
    """
    amount = f"ρ {increments_text(charge.rho)}"
    if charge.epsilon is not None:
        amount = f"ε {increments_text(charge.epsilon)}, {amount}"
    if charge.delta:
        amount += f", δ {delta_text(charge.delta)}"
    planned = planned_epsilon(charge, delta) if charge.epsilon is None else None
    if planned is None:
        return amount
    both = {"epsilon": decimal_text(planned), "delta": decimal_text(delta)}
    return f"{amount} ({words['planned-epsilon'].format(**both)})"


def budget_text(limit: Budget) -> str:
    epsilon = f"ε {decimal_text(limit.epsilon)}"
    if not limit.delta:
        return epsilon
    return f"{epsilon}, δ {decimal_text(limit.delta)}"


def _left(standing: Standing) -> str:
    left = {"ε": standing.left.epsilon, "ρ": standing.left.rho}
    told = " / ".join(f"{symbol} {decimal_text(most)}" for symbol, most in left.items() if most)
    if not standing.spent.delta:
        return told
    return f"{told}; δ {delta_text(standing.left.delta)}"
