# SPDX-License-Identifier: Apache-2.0
"""``sfumato init --interactive``: asks the owner for each open value of the declarations.

A prompt says what the answer means for the noise.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import click

from sfumato.cli.init_forms import orders_of
from sfumato.cli.init_keys import Keys
from sfumato.cli.init_toml import TYPES, TableDraft
from sfumato.cli.language import say
from sfumato.errors import InvalidNumber
from sfumato.exact.rational import to_fraction

# The question of which the consequences are told.
_TYPICAL_ROWS = 1000
_TYPICAL_EPSILON = 0.1
_BOUNDED = ("integer", "real", "date", "timestamp")


def asked(tables: Sequence[TableDraft], keys: Keys) -> tuple[str, list[TableDraft]]:
    """Asks the data owner on the terminal for all values that drafts of tables leave open. Returns
    the total epsilon of the budget and the completed drafts.
    """
    say("Answer from what is known without this data. An empty answer leaves a place open.")
    epsilon = _prompt("epsilon of all answers together", "1")
    return epsilon, [_table(draft, keys) for draft in tables]


def _table(draft: TableDraft, keys: Keys) -> TableDraft:
    """Asks for the open values of a table; returns it with the answers."""
    say(f"\ntable {draft.name}")
    unit = _unit(keys.unit_of(draft.name))
    said = dict(draft.codebook)
    for name, known in draft.columns.known.items():
        if name not in keys.names:
            said[name] = _column(name, dict(said.get(name, {}) or known), draft)
    return replace(draft, unit=unit, codebook=said)


def _unit(drafted: dict[str, str]) -> dict[str, object] | None:
    """Asks for the unit of a table: empty if each row is a unit, None if it stays open."""
    if click.confirm("Is each row another person, who is in no other row?", default=False):
        return {}
    column = _prompt("the column that says whom a row is about", drafted.get("column", ""))
    if not column:
        return None
    unit: dict[str, object] = {"column": column}
    if column == drafted.get("column") and "via" in drafted:
        unit["via"] = drafted["via"]
    for name, what in (
        ("max_rows", "rows of one person that count in a group"),
        ("max_groups", "groups in which one person counts"),
    ):
        limit = _prompt(f"{what} (a number, or auto)", "auto")
        unit[name] = int(limit) if limit.isdecimal() else limit
        if limit.isdecimal():
            say(f"  the noise of a count grows {limit} times")
    return unit


def _column(name: str, known: dict[str, object], draft: TableDraft) -> dict[str, object]:
    """Asks for the missing keys of a column; returns them with the ``known`` ones."""
    guessed = draft.columns.guesses.get(name, {})
    if "type" not in known:
        kind = click.prompt(
            f"{name}: type", type=click.Choice(TYPES), default=guessed.get("type", "text")
        )
        known["type"] = kind
    kind = str(known["type"])
    if kind == "category" and "values" not in known:
        values = _prompt(f"{name}: every possible value, with commas between them", "")
        if values:
            known["values"] = [value.strip() for value in values.split(",") if value.strip()]
            say(f"  {name}: {_of_count(len(values.split(',')))}")
    if kind == guessed.get("type") and "format" in guessed and "format" not in known:
        forms = orders_of(guessed["format"])
        known["format"] = _prompt(f"{name}: {forms[0]} or {forms[1]}", forms[0])
    if kind in _BOUNDED:
        for end, what in (("lower", "least"), ("upper", "greatest")):
            if end not in known:
                bound = _prompt(f"{name}: the {what} possible value", "")
                known |= {end: bound} if bound else {}
    if kind in ("integer", "real"):
        say(f"  {name}: {consequence(known.get('lower'), known.get('upper'))}")
    return known


def _prompt(text: str, default: str) -> str:
    """The stripped answer to a prompt; empty if there is none."""
    return str(click.prompt(text, default=default, show_default=bool(default))).strip()


def consequence(lower: object, upper: object) -> str:
    """Returns the error of a mean of 1,000 rows at epsilon 0.1 that these bounds imply, as text.

    A mean of n rows has discrete Laplace noise of scale about (upper - lower) / (n epsilon), which
    stays within ln(20) scales with probability 95%.

    >>> consequence(17, 90)
    'its mean over 1,000 rows at epsilon 0.1 is within +- 2.19'
    >>> consequence(None, 90)
    'questions that add it up are refused until both bounds are declared'
    """
    try:
        width = float(_number(upper) - _number(lower))
    except (InvalidNumber, TypeError):
        return "questions that add it up are refused until both bounds are declared"
    error = width * math.log(20) / (_TYPICAL_ROWS * _TYPICAL_EPSILON)
    return (
        f"its mean over {_TYPICAL_ROWS:,} rows at epsilon {_TYPICAL_EPSILON} is within "
        f"+- {error:.3g}"
    )


def _number(bound: object) -> Fraction:
    """A bound as a number."""
    if not isinstance(bound, int | float | str):
        raise TypeError
    return to_fraction("bound", bound)


def _of_count(groups: int) -> str:
    """The error of a count that a number of groups implies, as text."""
    error = math.log(20) / _TYPICAL_EPSILON
    return (
        f"a count in each of {groups} groups at epsilon {_TYPICAL_EPSILON} is within +- {error:.0f}"
    )
