# SPDX-License-Identifier: Apache-2.0
"""Finds the values of a ``sfumato.toml`` that the owner has not filled in yet.

``sfumato init`` writes such a file; ``load`` refuses it until it is complete.
"""

from collections.abc import Iterator, Mapping

from sfumato.errors import InvalidConfig

OPEN = "?"
# Strings of the data, of which "?" may be one.
_OF_THE_DATA = ("missing", "true", "false")


def require_filled(form: Mapping[str, object]) -> None:
    """Raises an error that names the values of a declaration file not filled in yet.

    A value is open if it is "?", if a column has no ``type``, or a unit no ``column``.

    Raises:
        InvalidConfig: some values are open.

    >>> require_filled({"budget": {"epsilon": "?"}})
    Traceback (most recent call last):
    ...
    sfumato.errors.InvalidConfig: 1 place is still open:
      budget: epsilon
    What to do: Fill what the comment beside each says. Remove the "# " of a guess to confirm it.
    """
    open_keys: dict[str, list[str]] = {}
    for path in _open_places(form, ()):
        open_keys.setdefault(".".join(path[:-1]), []).append(path[-1])
    if not open_keys:
        return
    count = sum(map(len, open_keys.values()))
    what = "1 place is" if count == 1 else f"{count} places are"
    shown = [f"\n  {place}: {', '.join(names)}" for place, names in open_keys.items()]
    raise InvalidConfig(
        f"{what} still open:{''.join(shown)}",
        remedy='Fill what the comment beside each says. Remove the "# " of a guess to confirm it.',
    )


def _open_places(form: Mapping[str, object], above: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yields the path of each open value of a TOML table, in order.

    ``above`` are the keys of the tables around it.
    """
    for key, value in form.items():
        path = (*above, key)
        if isinstance(value, Mapping):
            yield from _missing_keys(value, path)
            yield from _open_places(value, path)
        elif value == OPEN and not _is_of_the_data(path):
            yield path


def _missing_keys(form: Mapping[str, object], path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yields the required keys that the declaration of a column or a unit lacks."""
    match path:
        case ("tables", _, "columns", _) if "type" not in form:
            yield (*path, "type")
        case ("tables", _, "unit") if not {"column", "edge", "node"} & set(form):
            yield (*path, "column")


def _is_of_the_data(path: tuple[str, ...]) -> bool:
    """Whether a path leads to strings of the data: missing-value markers, or labels of categories."""
    return len(path) > 4 and (path[4] in _OF_THE_DATA or path[4:-1] == ("values",))
