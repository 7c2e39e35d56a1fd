# SPDX-License-Identifier: Apache-2.0
"""Reads one table of a TOML file by its declared keys.

The keys of a section are declared once. What ``read`` refuses, the lines that ``sfumato init``
writes and the tables of keys in docs/cli.md are made of them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sfumato.config.near_names import near
from sfumato.errors import InvalidConfig, InvalidNumber, SfumatoError, shown
from sfumato.exact.rational import to_fraction

REQUIRED: Any = object()


@dataclass(frozen=True, slots=True)
class Key:
    """One key: how its value is read, an example in TOML, and what it means.

    ``read`` raises a SfumatoError that says what is allowed. A key with a ``default`` may be left
    out; without one it is required.
    """

    name: str
    read: Callable[[Any], Any]
    example: str
    help: str
    default: Any = REQUIRED

    @property
    def line(self) -> str:
        """The example as a line of TOML."""
        return f"{self.name} = {self.example}"


def read(form: object, place: str, keys: Sequence[Key]) -> dict[str, Any]:
    """Returns the value of every key of a section; those that are not there have their default.

    ``form`` is what TOML has at ``place``, which errors name.

    Raises:
        InvalidConfig: no table of TOML; a key that is unknown, missing or has a wrong value.

    >>> size = Key("size", whole, example="300", help="rows of a group")
    >>> read({"size": 20}, "questions.rides", [size])
    {'size': 20}
    >>> read({"sise": 20}, "questions.rides", [size])
    Traceback (most recent call last):
    ...
    sfumato.errors.InvalidConfig: questions.rides: unknown key 'sise'.
    Allowed: size
    What to do: Did you mean size?
    """
    names = [key.name for key in keys]
    if not isinstance(form, Mapping):
        raise InvalidConfig(f"{place} is not a table of TOML.", allowed=", ".join(names))
    for name in form:
        if name not in names:
            raise InvalidConfig(
                f"{place}: unknown key {shown(name)}.",
                allowed=", ".join(names),
                remedy=near(name, names),
            )
    values = {}
    for key in keys:
        if key.name in form:
            values[key.name] = _value(form[key.name], place, key)
        elif key.default is REQUIRED:
            raise InvalidConfig(f"{place}: {key.name} is missing.", remedy=key.line)
        else:
            values[key.name] = key.default
    return values


def stated(values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the values that a section states; what is made of them has defaults of its own."""
    return {name: value for name, value in values.items() if value is not None}


def _value(written: object, place: str, key: Key) -> Any:
    try:
        return key.read(written)
    except SfumatoError as error:
        raise InvalidConfig(
            f"{place}: {key.name} = {_shown(written)}.", allowed=error.allowed, remedy=key.line
        ) from None


def _shown(written: object) -> str:
    """A value in the words of TOML."""
    if isinstance(written, bool):
        return str(written).lower()
    if isinstance(written, Mapping):
        return "a table"
    return "a list" if isinstance(written, list) else shown(written)


@contextmanager
def placed(place: str) -> Iterator[None]:
    """Adds the place in a file to what a constructor refuses."""
    try:
        yield
    except SfumatoError as error:
        raise InvalidConfig(
            f"{place}: {error.problem}", allowed=error.allowed, remedy=error.remedy
        ) from None


def only(allowed: str) -> InvalidConfig:
    """The error of a reader; ``read`` adds the place, the value and an example."""
    return InvalidConfig("A value that is not allowed.", allowed=allowed)


def as_is(value: Any) -> Any:
    """Takes a value as it is; the constructor checks it."""
    return value


def text(value: object) -> str:
    """Reads a text that is not empty."""
    if not isinstance(value, str) or not value:
        raise only("a text that is not empty")
    return value


def number(value: Any) -> int | str:
    """Reads a finite number; a decimal is returned as the text that is written.

    >>> number("1e-6"), number(0.1), number(2)
    ('1e-6', '0.1', 2)
    """
    try:
        to_fraction("number", value)
    except InvalidNumber:
        raise only('a number: "0.1", "1e-6" or 2') from None
    return value if isinstance(value, int) else str(value)


def whole(value: object) -> int:
    """Reads a whole number."""
    if type(value) is not int:
        raise only("a whole number")
    return value


def flag(value: object) -> bool:
    """Reads true or false of TOML; refuses anything else, texts and 0 and 1 too."""
    if not isinstance(value, bool):
        raise only("true or false")
    return value


def texts(value: object) -> list[str]:
    """Reads a list of texts."""
    if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
        raise only("a list of texts")
    return value


def table(value: object) -> Mapping[str, Any]:
    """Reads a table of TOML."""
    if not isinstance(value, Mapping):
        raise only("a table of TOML")
    return value
