# SPDX-License-Identifier: Apache-2.0
"""Translates the output of the shell by a catalogue of sentences beside this file.

A catalogue has pairs of sentences. ``{1}``, ``{2}`` match any part of a sentence, and ``{1*}`` in a
translation a part that is translated too. Text without an entry stays English. Only complete lines,
the fixed headers of tables and remarks in place of a number are replaced: never a value, a name of
a column, or what is written to a file.
"""

import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from importlib.resources import files
from typing import Any

import click

from sfumato.show.render import UNTOLD, display_width

# Languages by their names; the first needs no catalogue.
LANGUAGES = ("en", "zh")
VARIABLE = "SFUMATO_LANG"
_PLACE = re.compile(r"\{(\d)\*?\}")
_RULE = re.compile(r" *-+( +-+)*")
# The headers of columns that hold remarks and numbers, never a value of the data.
_ERRORS = frozenset(("95% interval", "95% error", "rows in group", "rows in a group"))
_NAMED = re.compile(r"([A-Z]\w+: )(.+)")
# Sentences inside sentences go no deeper.
_DEEPEST = 4


@dataclass(frozen=True)
class Words:
    """The catalogue of a language: translations of sentences, and of the headers of tables.

    >>> words = Words({"wrote {1}": "已写入 {1}"})
    >>> words.told("wrote out.csv"), words.told("anything else")
    ('已写入 out.csv', 'anything else')
    """

    sentences: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    tables: Mapping[str, str] = field(default_factory=dict)
    code: str = "en"

    @cached_property
    def _patterns(self) -> list[tuple[re.Pattern[str], str]]:
        """The sentences with placeholders as patterns, in the order in which they are tried.

        Sentences that only frame another one ("note: {1}") come first, then those with the longest
        fixed text.
        """
        patterns = []
        for english, other in self.sentences.items():
            pieces = _PLACE.split(english)
            if len(pieces) > 1:
                fixed = "".join(pieces[::2])
                groups = [re.escape(pieces[0])]
                for name, text in zip(pieces[1::2], pieces[2::2], strict=True):
                    groups.append(f"(?P<p{name}>.+?){re.escape(text)}")
                is_frame = len(pieces) == 3 and not pieces[2] and "{1*}" in other
                rank = (not is_frame, -len(fixed))
                patterns.append((rank, re.compile("".join(groups), re.DOTALL), other))
        patterns.sort(key=lambda each: each[0])
        return [(pattern, other) for _, pattern, other in patterns]

    def sentence(self, english: str, depth: int = 0) -> str:
        """Translates a sentence; returns it unchanged if the catalogue has no entry."""
        if english in self.sentences:
            return self.sentences[english]
        if depth < _DEEPEST:
            for pattern, other in self._patterns:
                match = pattern.fullmatch(english)
                if match is not None:
                    return self._filled(other, match, depth)
        return english

    def _filled(
        self,
        other: str,
        match: re.Match[str],
        depth: int,
    ) -> str:
        """Fills the placeholders of a translation with the matched parts."""

        def part(place: re.Match[str]) -> str:
            found = match[f"p{place[1]}"]
            return self.sentence(found, depth + 1) if "*" in place[0] else found

        return _PLACE.sub(part, other)

    def told(self, text: str) -> str:
        """Translates lines: each line is a sentence, or part of a table."""
        if not self.sentences:
            return text
        lines = text.split("\n")
        said = []
        rule = ""
        titles: tuple[str, ...] = ()
        for line, after in zip(lines, [*lines[1:], ""], strict=True):
            cells = _cells(line, rule)
            if line.strip() and _RULE.fullmatch(after) is not None:
                rule, titles = after, _cells(line, after, is_title=True)
                said.append(_padded(self.titles(titles), rule).rstrip())
            elif cells:
                said.append(self._row(line, cells, titles, rule))
            else:
                said.append(self._line(line))
        return "\n".join(said)

    def titles(self, titles: Sequence[str]) -> list[str]:
        """Translates the header of a table, whose names of columns of the data stay."""
        for english, other in self.tables.items():
            first = english.split("  ")
            if list(titles[: len(first)]) == first:
                rest = titles[len(first) :]
                return [*other.split("  "), *(self.headers.get(each, each) for each in rest)]
        return [self.headers.get(each, each) for each in titles]

    def _row(self, line: str, cells: Sequence[str], titles: Sequence[str], rule: str) -> str:
        """Translates the remarks of a row of a table, where a number or its error would stand."""
        said = list(cells)
        for place, (title, after) in enumerate(zip(titles, [*titles[1:], ""], strict=True)):
            is_number = after == "95% interval" and cells[place] == UNTOLD
            if title in _ERRORS or is_number:
                said[place] = self.sentence(cells[place])
        if said == list(cells):
            return line
        return _padded(said, rule, to_right=True)

    def _line(self, line: str) -> str:
        """Translates a line; the class name of an error is translated too."""
        inner = line.strip()
        if not inner:
            return line
        named = _NAMED.fullmatch(inner)
        other = self.sentence(inner)
        if named is not None and other == inner:
            translated = self.sentence(named[2])
            if translated != named[2]:
                other = named[1] + translated
        return line.replace(inner, other, 1)


def _cells(line: str, rule: str, *, is_title: bool = False) -> tuple[str, ...]:
    """Returns the cells of a line above or below a rule; none if it is no line of that table."""
    # one sign for each column of the terminal: a wide one is followed by an empty one
    signs = [part for sign in line for part in (sign, "")[: display_width(sign)]]
    if is_title:
        signs += [" "] * (len(rule) - len(signs))
    if not rule or len(signs) != len(rule):
        return ()
    gaps = "".join(sign for sign, mark in zip(signs, rule, strict=True) if mark == " ")
    if gaps.strip():
        return ()
    spans = [match.span() for match in re.finditer("-+", rule)]
    return tuple("".join(signs[first:last]).strip() for first, last in spans)


def _padded(cells: Sequence[str], rule: str, *, to_right: bool = False) -> str:
    """Pads the cells of a table to the widths of its columns, which a rule draws."""
    line = ""
    for cell, mark in zip(cells, re.finditer("-+", rule), strict=True):
        blanks = " " * (len(mark[0]) - display_width(cell))
        line += " " * (mark.start() - display_width(line))
        line += blanks + cell if to_right else cell + blanks
    return line


# The language of the present command.
_WORDS: ContextVar[Words | None] = ContextVar("words", default=None)


@lru_cache
def words_of(language: str) -> Words:
    """Returns the catalogue of a language.

    >>> words_of("en").told("nothing was charged")
    'nothing was charged'
    """
    if language == LANGUAGES[0]:
        return Words()
    form = tomllib.loads((files("sfumato.cli") / f"{language}.toml").read_text(encoding="utf-8"))
    return Words(form["sentences"], form["headers"], form["tables"], language)


def present() -> Words:
    """Returns the message catalogue of the running command.

    It is the one chosen by an option, or else that of the environment variable ``SFUMATO_LANG``.
    """
    chosen = _WORDS.get()
    if chosen is None:
        wanted = os.environ.get(VARIABLE, "").lower()
        chosen = words_of(next((each for each in LANGUAGES if wanted.startswith(each)), "en"))
    return chosen


def choose(language: str | None) -> None:
    """Sets the language of the running command; None means the language of the environment."""
    _WORDS.set(None if language is None else words_of(language))


class Declared(str):
    """A line of names and values that the data owner declared; it is printed untranslated."""

    __slots__ = ()


def say(text: object, *, err: bool = False) -> None:
    """Prints text for people, translated to the language of the running command."""
    click.echo(text if isinstance(text, Declared) else present().told(str(text)), err=err)


class _Help(click.HelpFormatter):
    """Formats help texts with fixed words in the chosen language."""

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        super().write_usage(prog, args, present().sentence("Usage: ") if prefix is None else prefix)

    def write_heading(self, heading: str) -> None:
        super().write_heading(present().sentence(heading))

    def write_dl(self, rows: Any, *given: Any, **named: Any) -> None:
        said = [(name, _with_default(text)) for name, text in rows]
        super().write_dl(said, *given, **named)


def _with_default(text: str) -> str:
    """The help of an option, followed by its default in brackets."""
    words = present()
    before, bracket, default = text.partition("  [default: ")
    if not bracket:
        return words.sentence(text)
    return f"{words.sentence(before)}  [{words.sentence('default')}: {default}"


class _Context(click.Context):
    formatter_class = _Help


def localized(command: click.Command) -> click.Command:
    """Returns a command with its help in the chosen language."""
    words = present()
    if not words.sentences:
        return command
    translated = copy(command)
    translated.context_class = _Context
    translated.help = _paragraphs(words, command.help)
    translated.short_help = _paragraphs(words, command.short_help)
    translated.params = [_parameter(words, each) for each in command.params]
    if isinstance(translated, click.Group):
        translated.commands = {name: localized(each) for name, each in translated.commands.items()}
    return translated


def _parameter(words: Words, given: click.Parameter) -> click.Parameter:
    """An option with its help translated."""
    made: Any = copy(given)
    if isinstance(made, click.Option):
        made.help = _paragraphs(words, made.help)
    return made  # type: ignore[no-any-return]


def _paragraphs(words: Words, text: str | None) -> str | None:
    """A help text with each paragraph translated."""
    if not text:
        return text
    paragraphs = [" ".join(each.split()) for each in text.split("\n\n")]
    return "\n\n".join(words.sentence(each) for each in paragraphs)
