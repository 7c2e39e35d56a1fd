# SPDX-License-Identifier: Apache-2.0
"""The report page for a compliance officer: self-contained HTML, no script, everything escaped."""

import ast
import html
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import reduce
from operator import add
from pathlib import Path

from sfumato.accounting.budget_gates import Charge
from sfumato.errors import WrongUse
from sfumato.exact.rational import decimal_text
from sfumato.exact.rounding import exp_up
from sfumato.ledger.account_path import UNSTATED
from sfumato.ledger.account_status import Standing
from sfumato.ledger.balance import increments_text
from sfumato.ledger.report_text import LANGUAGES
from sfumato.ledger.request import SQL
from sfumato.ledger.store.base import FORFEITED, SUSPENDED
from sfumato.ledger.summary import Act, Released, Summary
from sfumato.privacy.budget import Budget

_STYLE = (Path(__file__).parent / "report.css").read_text(encoding="utf-8")
# Beyond it the factor is a number that nobody can read.
_READABLE = 20

# What the owner switches on and off, and says once.
_SWITCHES = ("sharing", "closed")
_SAYINGS = {"without_heads": "without-heads", "other_people": "other-people"}
# Accounts that are named with what they read again and were refused.
_MOST_NAMED = 40

Words = Mapping[str, str]


def page(history: Summary, language: str = "en") -> str:
    """The report in a language.

    Raises:
        WrongUse: another language.
    """
    words = LANGUAGES.get(language)
    if words is None:
        raise WrongUse(f"language={language!r}.", allowed=" or ".join(LANGUAGES))
    title = _say(words, "title", dataset=str(history.contract["dataset"]))
    parts = (_promise, _accounts, _releases, _asked_again, _acts, _checked)
    body = "".join(f"<section>{part(history, words)}</section>" for part in parts)
    return (
        f'<!doctype html><html lang="{words["lang"]}"><head><meta charset="utf-8">'
        '<meta name="viewport" '
        f'content="width=device-width"><title>{title}</title><style>{_STYLE}</style></head>'
        f"<body><main><h1>{title}</h1><p>{words['intro']}</p>{body}<footer>{html.escape(history.at)}</footer>"
        "</main></body></html>\n"
    )


def _promise(history: Summary, words: Words) -> str:
    root = history.standings[0]
    assert root.limit is not None, "a dataset has a limit"
    units = sorted(set(history.contract["units"].values()) - {"(public)"})
    unit = " / ".join(
        words["row"] if owner == "(row)" else words["units"].format(column=_column(owner))
        for owner in units
    )
    lines = [
        _say(words, "protected", unit=unit, relation=words[str(history.contract["relation"])]),
        _limit_in_words(history.bound, words),
    ]
    if root.earlier:
        lines.append(
            _say(words, "lifetime", periods=str(len(root.earlier) + 1), limit=_budget(root.limit))
        )
        lines.append(_say(words, "spent-before", spent=_cost(_spent(root), words)))
    elif history.bound != root.limit:
        lines.append(_say(words, "lowered", limit=_budget(root.limit)))
    lines.append(_say(words, "spent", spent=_cost(root.spent, words)))
    lines.append(_say(words, "left", left=_left(root) or words["nothing"]))
    if root.sharing:
        lines.append(words["sharing"])
    if root.frozen:
        lines.append(f"<strong>{_say(words, 'frozen', reason=root.frozen)}</strong>")
    return f"<h2>{words['promise']}</h2>{_gauge(root)}" + "".join(
        f"<p>{line}</p>" for line in lines
    )


def _limit_in_words(limit: Budget, words: Words) -> str:
    factor = f"e^{decimal_text(limit.epsilon)}"
    if limit.epsilon <= _READABLE:
        # rounded up, so that the promise is never made to sound better than it is
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
    return ", ".join(map(str, parts)) if isinstance(parts, tuple | list) else unit


def _spent(standing: Standing) -> Charge:
    """What an account has spent in all its periods."""
    return reduce(add, (period.spent for period in standing.earlier), standing.spent)


def _accounts(history: Summary, words: Words) -> str:
    rows = []
    for standing in history.standings:
        depth = len(standing.scope.parts) - 1
        name = standing.scope.parts[-1] if depth else words["whole"]
        shown = words["unstated"] if depth == 1 and name == UNSTATED else name
        limit = _budget(standing.limit) if standing.limit else words["bounded"]
        state = words["closed"] if standing.frozen else words["open"]
        spent = (_cost(standing.spent, words), _cost(_spent(standing), words))
        rows.append(
            (
                "\u2003" * depth + shown,
                limit,
                *spent,
                str(history.paid.get(standing.scope.id, 0)),
                state,
            )
        )
    header = [
        words[name] for name in ("account", "limit", "used", "used-in-all", "charges", "state")
    ]
    notes = [words["shared-note"].format(count=history.shared)] if history.shared else []
    if len(rows) < history.accounts:
        notes.append(words["accounts-note"].format(shown=len(rows), all=history.accounts))
    told = "".join(f"<p>{note}</p>" for note in notes)
    return f"<h2>{words['accounts']}</h2>{told}{_table(header, rows)}"


def _releases(history: Summary, words: Words) -> str:
    rows = [_release(question, words) for question in history.released]
    header = [words[name] for name in ("when", "who", "why", "what", "cost")]
    note = words["released-note"].format(shown=len(rows), all=history.charges)
    return f"<h2>{words['released']}</h2><p>{note}</p>{_table(header, rows)}"


def _release(question: Released, words: Words) -> tuple[str, ...]:
    purpose = words["unstated"] if question.scope.purpose == UNSTATED else question.scope.purpose
    what = question.statement or words["no-statement"]
    if question.kind != SQL:
        what = f"{question.kind}: {what}"
    if question.places is not None:
        begun, places, lost = question.places
        what = f"{what} {words['in-pieces'].format(begun=begun, places=places)}"
        what = f"{what} {words['not-stored'].format(lost=lost)}" if lost else what
        what = f"{what} {words['suspended']}" if question.state == SUSPENDED else what
    elif question.state == FORFEITED:
        what = words[FORFEITED]
    if question.shared:
        what = f"{what} {words['given-again']}"
    return (
        question.at[:19].replace("T", " "),
        question.scope.analyst,
        purpose,
        what,
        _cost(question.cost, words),
    )


def _acts(history: Summary, words: Words) -> str:
    rows = [
        (
            act.at[:19].replace("T", " "),
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
    reads, refused = (
        history.rereads,
        {account: sum(kinds.values()) for account, kinds in history.refusals.items()},
    )
    accounts = sorted(
        {*reads, *refused},
        key=lambda account: (-reads.get(account, 0) - refused.get(account, 0), account),
    )
    rows = [
        (account, str(reads.get(account, 0)), _refused(history.refusals.get(account, {}), words))
        for account in accounts[:_MOST_NAMED]
    ]
    totals = {"reads": sum(reads.values()), "refusals": sum(refused.values())}
    notes = [words["asked-again-note"].format(**totals)]
    if len(rows) < len(accounts):
        notes.append(words["asked-again-shown"].format(shown=len(rows), all=len(accounts)))
    told = "".join(f"<p>{note}</p>" for note in notes)
    header = [words[name] for name in ("account", "rereads", "refusals")]
    return f"<h2>{words['asked-again']}</h2>{told}{_table(header, rows) if rows else ''}"


def _refused(kinds: Mapping[str, int], words: Words) -> str:
    """The number of refused questions, by reason."""
    told = ((words.get(f"refused-{kind}", kind), many) for kind, many in kinds.items())
    return " / ".join(
        f"{why}: {many}" for why, many in sorted(told, key=lambda pair: (-pair[1], pair[0]))
    )


def _act(act: Act, words: Words) -> str:
    kind = act.kind
    if kind == "policy":
        kind = next(
            (
                f"{name}-{'on' if act.body[name] else 'off'}"
                for name in _SWITCHES
                if name in act.body
            ),
            "policy",
        )
        kind = next((said for name, said in _SAYINGS.items() if name in act.body), kind)
    form = act.body.get("limit") or act.body.get("contract")
    limit = _budget(Budget(form["epsilon"], form["delta"])) if form else words["no-limit"]
    return words[f"act-{kind}"].format(
        limit=limit,
        silence=act.body.get("without_heads", ""),
        failures=act.body.get("failures", 0),
        place=act.body.get("to") or act.body.get("from", ""),
    )


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
    return words[key].format(**{name: html.escape(value) for name, value in values.items()})


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f"<th>{html.escape(cell)}</th>" for cell in header)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cost(charge: Charge, words: Words) -> str:
    epsilon = (
        words["unbounded"] if charge.epsilon is None else f"ε {increments_text(charge.epsilon)}"
    )
    return f"{epsilon}, ρ {increments_text(charge.rho)}"


def _budget(limit: Budget) -> str:
    text = f"ε {decimal_text(limit.epsilon)}"
    return f"{text}, δ {decimal_text(limit.delta)}" if limit.delta else text


def _left(standing: Standing) -> str:
    options = [f"ε {decimal_text(standing.left.epsilon)}"] if standing.left.epsilon else []
    return " / ".join(
        [*options, f"ρ {decimal_text(standing.left.rho)}"] if standing.left.rho else options
    )
