# SPDX-License-Identifier: Apache-2.0
"""Writes the text of a ``sfumato.toml`` with an open value for each decision of the owner."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sfumato.cli.init_forms import orders_of
from sfumato.cli.init_keys import Keys
from sfumato.cli.init_sources import Columns
from sfumato.config.load import BUDGET
from sfumato.config.open_places import OPEN
from sfumato.config.section import REQUIRED, Key
from sfumato.config.table import COLUMNS, UNIT

_HEADER = """\
# The declarations of a dataset. `sfumato check` names each place that is still open ("?").
#
# Fill each place from what is known without this data: a codebook, a law, a questionnaire, what is
# possible at all. Never look for it in the data: a largest value, or a list of the values that
# occur, is a fact about the persons in it, and every answer would show it.
# A line "# type = ..." is a guess from the form of the first lines: remove "# " to confirm it."""
_CONFIRM = 'remove the first "# " to confirm'
_ORDER = '"{}" or "{}": which comes first, the form does not tell'
_NESTED = "nested values, which no type reads; write what you need of them as columns of their own"
_READABLE = "  # a guess: it is right if the names below are"
TYPES = tuple(kind for kind in COLUMNS if kind != "array")
_UNIT_WHY = """\
# Whom is it about, and how much of one person counts? Limits are enforced: rows beyond them are
# left out. They are choices, not facts of the data: "auto" learns one privately, for a charge."""
# The places of a unit that the owner fills.
_OF_A_UNIT = ("max_rows", "max_groups")


@dataclass(frozen=True, slots=True)
class TableDraft:
    """A table to declare: its source, its columns, and their declarations in codebooks.

    ``unit`` is the owner's answer of ``--interactive``; None leaves it open, and an empty mapping
    means that each row is a unit.
    """

    name: str
    source: str
    columns: Columns
    codebook: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    table: str | None = None
    unit: Mapping[str, object] | None = None


def config_text(
    dataset: str, tables: Sequence[TableDraft], keys: Keys, *, epsilon: str = OPEN
) -> str:
    """Returns the text of a ``sfumato.toml`` that declares the tables."""
    lines = [
        _HEADER,
        "",
        f"dataset = {literal(dataset)}  # its name in the ledger; it cannot change later",
        'ledger = "ledger.db"  # records what is spent; keep it, and back it up',
        "",
        "[budget]",
        *_section(BUDGET, {"epsilon": epsilon}),
    ]
    lines += keys.lines
    for table in tables:
        lines += ["", *_table(table, keys)]
    return "\n".join(lines) + "\n"


def _section(keys: Sequence[Key], stated: Mapping[str, object]) -> Iterator[str]:
    """The lines of a section: its required keys, and its optional keys as comments."""
    for key in keys:
        if key.name in stated or key.default is REQUIRED:
            yield _line(key.name, stated.get(key.name, OPEN), key.help)
        else:
            yield f"# {key.line}  # {key.help}"


def _table(table: TableDraft, keys: Keys) -> Iterator[str]:
    """The lines of one table."""
    head = f"tables.{_key(table.name)}"
    yield f"[{head}]"
    yield f"source = {literal(table.source)}"
    if table.table is not None:
        yield f"table = {literal(table.table)}"
    for name, value in table.columns.options.items():
        is_guess = name == "encoding" and value != "utf-16"
        yield f"{name} = {literal(value)}{_READABLE if is_guess else ''}"
    for name, value in table.columns.guessed_options.items():
        yield f"# {name} = {literal(value)}  # a guess from the first lines: {_CONFIRM}"
    yield "# size = ...  # the number of rows, only if it is published already"
    if table.unit is None or table.unit:
        yield from ["", f"[{head}.unit]", *_unit(table, keys)]
    for column in table.columns.known:
        yield ""
        said = table.codebook.get(column, {})
        if column in keys.names and not {"lower", "values"} & set(said):
            yield f"# {column}: a key by its name, no column of questions"
            continue
        yield f"[{head}.columns.{_key(column)}]"
        yield from _column(table, column)
    for column in table.columns.nested:
        yield from ["", f"# {literal(column)}: {_NESTED}"]


def _unit(table: TableDraft, keys: Keys) -> Iterator[str]:
    """The lines of the unit of a table."""
    yield _UNIT_WHY
    stated = table.unit or {}
    draft = keys.unit_of(table.name)
    if stated:
        for name, value in stated.items():
            yield f"{name} = {literal(value)}"
        return
    yield "# Is each row another person, who is in no other row? Then delete this section."
    for name, value in draft.items():
        yield f"# {name} = {literal(value)}  # a draft from the names: {_CONFIRM}"
    if not draft and keys.by_table[table.name]:
        candidates = ", ".join(keys.by_table[table.name])
        yield f"# Keys by their names: {candidates}. A visit or an order is no person: who is it?"
    for key in UNIT:
        if key.name in _OF_A_UNIT or (key.name == "column" and not draft):
            yield _line(key.name, OPEN, key.help)


def _column(table: TableDraft, column: str) -> Iterator[str]:
    """The lines of a column: known keys, guessed keys, and open ones."""
    known = dict(table.codebook.get(column, {}) or table.columns.known[column])
    guessed = table.columns.guesses.get(column, {})
    kind = str(known.get("type") or guessed.get("type", ""))
    if "type" not in known and kind:
        yield f"# type = {literal(kind)}  # or {_other_types(kind)}"
    elif "type" not in known:
        yield _line("type", OPEN, ", ".join(TYPES))
    for name, value in known.items():
        yield f"{name} = {literal(value)}"
    for key in COLUMNS.get(kind, ()):
        # dates whose order the form does not tell need one more place
        form = guessed.get(key.name) if guessed.get("type") == kind else None
        why = key.help if form is None else _ORDER.format(*orders_of(form))
        if (key.default is REQUIRED or form is not None) and key.name not in known:
            yield _line(key.name, OPEN, why)
    if kind == "category" and "type" not in known:
        yield '# if it is free text: type = "text", and delete the line "values"'


def _other_types(kind: str) -> str:
    """The other types that strings of the same form may have."""
    if kind == "integer":
        return '"category" if the numbers are codes'
    if kind == "category":
        return '"text"'
    return "another type"


def _line(name: str, value: object, why: str) -> str:
    """A line of TOML with a comment that explains it.

    The comment stays when the value is filled in.
    """
    return f"{name} = {literal(value)}  # {why}"


def _key(name: str) -> str:
    """A key as TOML writes it, in quotes unless it is a bare key."""
    bare = name.replace("_", "").replace("-", "")
    return name if bare.isascii() and bare.isalnum() else literal(name)


def literal(value: object) -> str:
    """Returns a value as TOML.

    >>> literal(["a", 'b"']), literal({"1": "Male"}), literal(17)
    ('["a", "b\\\\""]', '{"1" = "Male"}', '17')
    """
    if isinstance(value, Mapping):
        pairs = [f"{literal(str(key))} = {literal(label)}" for key, label in value.items()]
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(literal, value)) + "]"
    return json.dumps(value, ensure_ascii=False)
