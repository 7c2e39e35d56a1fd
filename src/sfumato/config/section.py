# SPDX-License-Identifier: Apache-2.0
"""Reads one table of a TOML file by its declared keys.

The modules of ``config`` declare the keys of a section once, as ``Key`` values. From these come the
errors of ``read``, the lines that ``sfumato init`` writes, and the tables of keys in docs/cli.md.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, fields
from typing import Any

from sfumato.config.near_names import near
from sfumato.errors import InvalidConfig, InvalidNumber, SfumatoError, shown
from sfumato.exact.rational import to_fraction

REQUIRED: Any = object()


@dataclass(frozen=True, slots=True)
class Key:
    """One key of a section: its name, its reader, an example in TOML, and its meaning.

    ``read`` converts the value and raises a SfumatoError that says what is allowed. A key without a
    ``default`` is required.
    """

    name: str
    read: Callable[[Any], Any]
    example: str
    help: str
    default: Any = REQUIRED

    @property
    def line(self) -> str:
        """The line of TOML that sets the key to its example value."""
        return f"{self.name} = {self.example}"


def read(form: object, place: str, keys: Sequence[Key]) -> dict[str, Any]:
    """Returns the value of every key of a section; a key that is left out has its default.

    ``form`` is the TOML value at ``place``, the dotted name that errors quote.

    Raises:
        InvalidConfig: ``form`` is no table; a key is unknown, missing or has a wrong value.

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
    """Returns the entries whose value is not None, to pass on only the arguments that a file
    states.

    The others keep the default of the function that the entries are passed to.
    """
    return {name: value for name, value in values.items() if value is not None}


def _value(written: object, place: str, key: Key) -> Any:
    try:
        return key.read(written)
    except SfumatoError as error:
        raise InvalidConfig(
            f"{place}: {key.name} = {_shown(written)}.", allowed=error.allowed, remedy=key.line
        ) from None


def _shown(written: object) -> str:
    """A value as an error message quotes it, in the terms of TOML."""
    if isinstance(written, bool):
        return str(written).lower()
    if isinstance(written, Mapping):
        return "a table"
    return "a list" if isinstance(written, list) else shown(written)


@contextmanager
def placed(place: str) -> Iterator[None]:
    """Turns each SfumatoError of a ``with`` block into an InvalidConfig that names ``place``.

    ``place`` is the position in the configuration file, which the error names.
    """
    try:
        yield
    except SfumatoError as error:
        raise InvalidConfig(
            f"{place}: {error.problem}", allowed=error.allowed, remedy=error.remedy
        ) from None


def settings_missing(place: str, recipe: type[Any], given: Mapping[str, Any]) -> InvalidConfig:
    """Returns what to raise where a section leaves out settings without which no recipe is."""
    missing = [
        setting.name
        for setting in fields(recipe)
        if setting.default is MISSING
        and setting.default_factory is MISSING
        and setting.name not in given
    ]
    return InvalidConfig(
        f"{place}: settings are missing.",
        allowed=", ".join(setting.name for setting in fields(recipe)),
        remedy=f"Write {', '.join(missing)}, too.",
    )


def only(allowed: str) -> InvalidConfig:
    """Returns the error for a value in a configuration file, which states the allowed values.

    ``read`` adds the position in the file, the given value and an example to it.
    """
    return InvalidConfig("A value that is not allowed.", allowed=allowed)


def as_is(value: Any) -> Any:
    """Returns a configuration value unchecked: the constructor that receives it checks it."""
    return value


def text(value: object) -> str:
    """Returns a configuration value, after checking that it is a non-empty string."""
    if not isinstance(value, str) or not value:
        raise only("a text that is not empty")
    return value


def number(value: Any) -> int | str:
    """Returns a finite number of a configuration file; a decimal as the string that was written.

    >>> number("1e-6"), number(0.1), number(2)
    ('1e-6', '0.1', 2)
    """
    try:
        to_fraction("number", value)
    except InvalidNumber:
        raise only('a number: "0.1", "1e-6" or 2') from None
    return value if isinstance(value, int) else str(value)


def whole(value: object) -> int:
    """Returns a configuration value, after checking that it is an integer."""
    if type(value) is not int:
        raise only("a whole number")
    return value


def flag(value: object) -> bool:
    """Returns a configuration value, after checking that it is true or false, not a string or 0 or
    1.
    """
    if not isinstance(value, bool):
        raise only("true or false")
    return value


def texts(value: object) -> list[str]:
    """Returns a configuration value, after checking that it is a list of strings."""
    if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
        raise only("a list of texts")
    return value


def table(value: object) -> Mapping[str, Any]:
    """Returns a configuration value, after checking that it is a TOML table."""
    if not isinstance(value, Mapping):
        raise only("a table of TOML")
    return value
