# SPDX-License-Identifier: Apache-2.0
"""The domain of a telemetry task: every value that a device can hold, numbered from 0.

Oracles report the numbers. Every value has a number, so no value can make a report fail or be
missing: a string that is not listed counts as a public "other", a number beyond a bound as the
bound.
"""

import hashlib
import math
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, TypeAlias

import numpy as np

from sfumato.errors import InvalidDeclaration, UnknownName, shown
from sfumato.exact.rational import decimal_text, to_fraction
from sfumato.metadata.column import Category, Integer, Real
from sfumato.privacy.event import Json
from sfumato.telemetry.oracles.oracle import MOST_VALUES

# What a device holds that the list does not have.
OTHER = "(other)"
# Numbers of texts fit 64 bits.
_ALL = 1 << 64
# No text of one letter and the end that fits 64 bits is longer.
_LONGEST = 64
# Codes of a lattice that every language reads exactly.
_MOST_CODE = 1 << 53


@dataclass(frozen=True)
class Listed:
    """The domain of a task with a list of strings (in Unicode form NFC), and ``other`` for all
    other strings.

    >>> domain = Listed(("yes", "no"))
    >>> domain.size, domain.number("no"), domain.number("perhaps"), domain.labels
    (3, 1, 2, ('yes', 'no', '(other)'))
    """

    kind: ClassVar[str] = "listed"
    values: tuple[str, ...]
    other: str = OTHER
    _numbers: Mapping[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        every = [_text(value) for value in (*self.values, self.other)]
        numbers = {text: number for number, text in enumerate(every)}
        if len(every) < 2:
            raise InvalidDeclaration("A list without values.", allowed="1 text or more")
        if len(numbers) != len(every):
            again = next(text for number, text in enumerate(every) if numbers[text] != number)
            raise InvalidDeclaration(
                f"The value {shown(again)} comes twice.",
                allowed="texts that differ in Unicode form NFC, none of them the text for 'other'",
                remedy="Give each value once.",
            )
        object.__setattr__(self, "values", tuple(every[:-1]))
        object.__setattr__(self, "other", every[-1])
        object.__setattr__(self, "_numbers", numbers)

    @property
    def size(self) -> int:
        """The number of values of the domain, ``other`` included."""
        return len(self.values) + 1

    @property
    def labels(self) -> tuple[str, ...]:
        """The value that each number stands for."""
        return (*self.values, self.other)

    def number(self, value: object) -> int:
        """Returns the index in the domain of a device's value; that of ``other`` if the value is
        not listed.
        """
        other = len(self.values)
        text = _spelled(value)
        if text is None:
            return other
        return self._numbers.get(unicodedata.normalize("NFC", text), other)

    def known(self, label: object) -> int:
        """Returns the index of a value of the domain, given its label (UnknownName for any other
        label).
        """
        number = self.number(label)
        if number == len(self.values) and label != self.other:
            raise UnknownName(
                f"{shown(label)} was never a value of this task.",
                allowed=f"its {self.size:,} values",
                remedy="Devices that held it reported 'other'.",
            )
        return number

    def to_json(self) -> dict[str, Json]:
        """Returns the domain as it is written in a task."""
        return {"kind": self.kind, "values": list(self.values), "other": self.other}


@dataclass(frozen=True)
class Lattice:
    """The domain of numbers from ``lower`` to ``upper`` times ``step``; a device's number is
    rounded half to even, then clipped.

    A value that is not a number counts as the least number.

    >>> domain = Lattice(0, 8, Fraction(1, 4))
    >>> domain.size, domain.number(0.3), domain.number(1e300), domain.labels[:3]
    (9, 1, 8, (0.0, 0.25, 0.5))
    """

    kind: ClassVar[str] = "lattice"
    lower: int
    upper: int
    step: Fraction

    def __post_init__(self) -> None:
        codes = (self.lower, self.upper)
        if not all(type(code) is int and abs(code) <= _MOST_CODE for code in codes):
            raise InvalidDeclaration(f"Codes {shown(codes)}.", allowed="integers up to 2^53")
        if not 0 < self.upper - self.lower < MOST_VALUES or self.step <= 0:
            raise InvalidDeclaration(
                f"A lattice of {self.upper - self.lower + 1:,} numbers.",
                allowed=f"2 to {MOST_VALUES:,}",
                remedy="Declare a coarser step, such as sf.Real(0, 100, step=1).",
            )

    @property
    def size(self) -> int:
        """The number of values on the lattice."""
        return self.upper - self.lower + 1

    @cached_property
    def labels(self) -> tuple[int, ...] | tuple[float, ...]:
        """The number that each index of the domain stands for."""
        codes = range(self.lower, self.upper + 1)
        if self.step == 1:
            return tuple(codes)
        return tuple(float(code * self.step) for code in codes)

    def number(self, value: object) -> int:
        """Returns the number of a device's value: its index on the lattice, after rounding and
        clipping.
        """
        if isinstance(value, int | np.integer) and not isinstance(value, bool):
            exact = Fraction(int(value))
        elif isinstance(value, Fraction):
            exact = value
        elif isinstance(value, float | np.floating) and np.isfinite(value):
            # of a long double too, which may be farther than every float
            exact = Fraction(*value.as_integer_ratio())
        else:
            return self.size - 1 if _is_infinite(value) else 0
        code = round(exact / self.step)
        return min(max(code, self.lower), self.upper) - self.lower

    def known(self, label: object) -> int:
        """Returns the index of a number that is on the lattice (UnknownName for any other
        label).
        """
        number = self.number(label)
        if isinstance(label, bool) or self.labels[number] != label:
            raise UnknownName(
                f"{shown(label)} is no number of this task.",
                allowed=f"{self.labels[0]} to {self.labels[-1]} in steps of {self.step}",
            )
        return number

    def to_json(self) -> dict[str, Json]:
        """Returns the domain as it is written in a task."""
        return {
            "kind": self.kind,
            "lower": self.lower,
            "upper": self.upper,
            "step": decimal_text(self.step),
        }


@dataclass(frozen=True)
class Texts:
    """The domain of all strings, which are numbered by a hash instead of a list.

    A value that is not a string counts as the empty string. The number of a string is the first 8
    bytes of the SHA-256 of its Unicode form NFC in UTF-8.

    >>> Texts().number("") == Texts().number(3.5)
    True
    """

    kind: ClassVar[str] = "texts"
    size: ClassVar[int] = 1 << 64

    @property
    def labels(self) -> tuple[str, ...]:
        """Empty: the strings are not listed."""
        return ()

    def number(self, value: object) -> int:
        """Returns the number (hash) of a device's string."""
        text = value if isinstance(value, str) else ""
        form = unicodedata.normalize("NFC", text).encode("utf-8", "replace")
        return int.from_bytes(hashlib.sha256(form).digest()[:8], "big")

    def known(self, label: object) -> int:
        """Returns the number (hash) of a string (UnknownName for a label that is no string)."""
        if not isinstance(label, str):
            raise UnknownName(f"{shown(label)} is no text.", allowed="a text")
        return self.number(label)

    def to_json(self) -> dict[str, Json]:
        """Returns the domain as it is written in a task."""
        return {"kind": self.kind}


@dataclass(frozen=True)
class Words:
    """Strings over an alphabet, without a list; they can be discovered without candidates.

    A longer string is cut to its first ``length`` letters. A value that is not a string, or has
    another character, counts as the empty string. The letters are single characters in Unicode form
    NFC, without repetitions. The number of a string has ``length`` digits to the base letters + 1,
    the first letter the most significant; the digit of a letter is its position from 1, and 0
    follows the end.

    >>> domain = Words("ab", 3)
    >>> domain.size, domain.number("ab"), domain.text(15), domain.number("abba") == 17
    (27, 15, 'ab', True)
    >>> domain.number("a-b"), domain.number("") == domain.number(None)
    (0, True)
    """

    kind: ClassVar[str] = "words"
    letters: str
    length: int
    _digits: Mapping[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        letters = _text(self.letters)
        digits = {letter: place for place, letter in enumerate(letters, 1)}
        short = type(self.length) is int and 1 <= self.length <= _LONGEST
        once = letters == self.letters and len(digits) == len(letters)
        if not once or not short or self.size > _ALL:
            raise InvalidDeclaration(
                f"Texts of {len(self.letters)} letters and length {shown(self.length)}.",
                allowed="letters in Unicode form NFC, each once, and at most 2^64 texts",
                remedy="A shorter length: longer texts then count by their beginning.",
            )
        object.__setattr__(self, "_digits", digits)

    @property
    def symbols(self) -> int:
        """The number of symbols of a string's digits: the letters, and 0 for the end of a
        string.
        """
        return len(self.letters) + 1

    @property
    def size(self) -> int:
        """The number of codes of ``length`` digits, including those of no string."""
        return int(self.symbols**self.length)

    @property
    def labels(self) -> tuple[str, ...]:
        """Empty: the strings are not listed."""
        return ()

    def number(self, value: object) -> int:
        """Returns the integer code of a device's string: its symbols are the digits."""
        text = value if isinstance(value, str) else ""
        letters = unicodedata.normalize("NFC", text)
        if not all(letter in self._digits for letter in letters):
            letters = ""
        found = 0
        for letter in letters[: self.length]:
            found = found * self.symbols + self._digits[letter]
        after = max(self.length - len(letters), 0)
        return int(found * self.symbols**after)

    def known(self, label: object) -> int:
        """Returns the integer code of a string over the alphabet (UnknownName for any other
        value).
        """
        if isinstance(label, str) and self.text(self.number(label)) == label:
            return self.number(label)
        raise UnknownName(
            f"{shown(label)} is no text of this task.",
            allowed=f"at most {self.length} of the letters {self.letters}",
        )

    def text(self, number: int) -> str:
        """Returns the string that has this integer code."""
        found = []
        rest = number
        for _ in range(self.length):
            rest, digit = divmod(rest, self.symbols)
            found.append(self.letters[digit - 1] if digit else "")
        return "".join(reversed(found))

    def to_json(self) -> dict[str, Json]:
        """Returns the domain as it is written in a task."""
        return {"kind": self.kind, "letters": self.letters, "length": self.length}


def _spelled(value: object) -> str | None:
    """Returns the text of a text or of an integer up to 2^53; None for anything else."""
    if isinstance(value, str):
        return value
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        # a longer one would take long to write, or fail
        return str(int(value)) if abs(int(value)) <= _MOST_CODE else None
    return None


def _is_infinite(value: object) -> bool:
    """Whether a value is +infinity."""
    return isinstance(value, float | np.floating) and bool(value == np.inf)


@dataclass(frozen=True)
class Record:
    """The domain of a device with several named attributes, each with its own list or lattice.

    A device's value is a mapping; a missing attribute counts as a value that is not listed. The
    number of a value has the numbers of the attributes as digits, the first attribute the least
    significant. A label is a tuple of the labels of all attributes.

    >>> domain = Record(("lang", "age"), (Listed(("en", "de")), Lattice(0, 9, Fraction(1))))
    >>> domain.size, domain.number({"lang": "de", "age": 7}), domain.known(("de", 7))
    (30, 22, 22)
    """

    kind: ClassVar[str] = "record"
    names: tuple[str, ...]
    domains: tuple[Listed | Lattice, ...]

    def __post_init__(self) -> None:
        named = len(set(self.names)) == len(self.names) == len(self.domains) >= 2
        known = all(isinstance(domain, Listed | Lattice) for domain in self.domains)
        for name in self.names:
            _text(name)
        if not named or not known or self.size > _MOST_CODE:
            raise InvalidDeclaration(
                f"A record of {len(self.names)} attributes.",
                allowed="2 or more, each name once, with at most 2^53 values together",
            )

    @property
    def size(self) -> int:
        """The number of combinations of the attributes' values."""
        return math.prod(domain.size for domain in self.domains)

    @property
    def labels(self) -> tuple[str, ...]:
        """Empty: the combinations are not listed."""
        return ()

    def number(self, value: object) -> int:
        """Returns the number of a device's value, a mapping with a value for each attribute; a
        missing attribute counts as unlisted.
        """
        held = value if isinstance(value, Mapping) else {}
        pairs = zip(self.names, self.domains, strict=True)
        return self._digits([domain.number(held.get(name)) for name, domain in pairs])

    def known(self, label: object) -> int:
        """Returns the number of a combination of attribute values, given as a tuple of labels
        (UnknownName for anything else).
        """
        if not isinstance(label, tuple) or len(label) != len(self.domains):
            raise UnknownName(f"{shown(label)} is no tuple of {len(self.domains)} labels.")
        pairs = zip(label, self.domains, strict=True)
        return self._digits([domain.known(part) for part, domain in pairs])

    def _digits(self, numbers: Sequence[int]) -> int:
        """Returns the number with these digits."""
        found = 0
        for number, domain in zip(reversed(numbers), reversed(self.domains), strict=True):
            found = found * domain.size + number
        return found

    def place(self, name: str) -> int:
        """Returns the index of an attribute (UnknownName for any other name)."""
        if name not in self.names:
            raise UnknownName(f"No attribute {shown(name)}.", allowed=", ".join(self.names))
        return self.names.index(name)

    def require_sizes(self, sizes: Sequence[int]) -> None:
        """Raises InvalidDeclaration unless the attributes have these numbers of values."""
        own = [domain.size for domain in self.domains]
        if list(sizes) != own:
            raise InvalidDeclaration(
                f"Oracles of {list(sizes)} values for attributes of {own}.",
                allowed="an oracle for each attribute, in their order",
            )

    def to_json(self) -> dict[str, Json]:
        """Returns the domain as it is written in a task."""
        domains: list[Json] = [domain.to_json() for domain in self.domains]
        return {"kind": self.kind, "names": list(self.names), "domains": domains}


Domain: TypeAlias = Listed | Lattice | Texts | Words | Record
Simple: TypeAlias = Domain | Category | Integer | Real | Sequence[str]
Declared: TypeAlias = Simple | Mapping[str, Simple]


def domain_of(declared: Declared, other: str = OTHER) -> Domain:
    """Returns the domain for a declaration: a list of strings, or a column type of a table.

    >>> domain_of(Integer(0, 120)).size, domain_of(["a", "b"]).size
    (121, 3)
    """
    match declared:
        case Listed() | Lattice() | Texts() | Words() | Record():
            return declared
        case Category():
            return Listed(declared.values, other)
        case Integer() | Real():
            return Lattice(declared.lower_code, declared.upper_code, declared.step)
        case Mapping():
            parts = [domain_of(part, other) for part in declared.values()]
            return Record(tuple(declared), tuple(parts))  # type: ignore[arg-type]
        case list() | tuple():
            return Listed(tuple(declared), other)
        case _:
            raise InvalidDeclaration(
                f"A domain that is {shown(declared)}.",
                allowed="a list of texts, sf.Category, sf.Integer, sf.Real, telemetry.Texts(), "
                "telemetry.Words(...), or a mapping of names to these",
            )


def domain_from_json(form: Mapping[str, Json]) -> Domain:
    """Reads a domain as ``to_json`` wrote it (KeyError, TypeError, ValueError if damaged)."""
    fields: dict[str, Any] = {name: part for name, part in form.items() if name != "kind"}
    if form["kind"] == Listed.kind:
        return Listed(**fields | {"values": tuple(fields["values"])})
    if form["kind"] == Lattice.kind:
        return Lattice(**fields | {"step": to_fraction("step", fields["step"])})
    if form["kind"] == Record.kind:
        parts = [domain_from_json(part) for part in fields["domains"]]
        return Record(**fields | {"names": tuple(fields["names"]), "domains": tuple(parts)})
    if form["kind"] == Words.kind:
        return Words(**fields)
    if form["kind"] == Texts.kind and not fields:
        return Texts()
    raise KeyError(form["kind"])


def _text(value: object) -> str:
    """Returns a text in Unicode form NFC (InvalidDeclaration for anything else)."""
    if not isinstance(value, str) or not value:
        raise InvalidDeclaration(f"The value {shown(value)}.", allowed="a text that is not empty")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidDeclaration("A value that is no Unicode text.") from None
    return unicodedata.normalize("NFC", value)
