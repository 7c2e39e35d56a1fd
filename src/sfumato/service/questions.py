# SPDX-License-Identifier: Apache-2.0
"""What a body states, as the arguments of ``Session.query`` and ``Session.preview``."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import sfumato as sf
from sfumato.errors import WrongUse, shown

# The fields of a question, named as in Python.
PRICED = (
    "sql", "parameters", "epsilon", "rho", "delta", "error", "max_epsilon", "interval", "values",
)  # fmt: skip
# The fields that say what something else costs.
COSTS = ("epsilon", "rho", "delta", "error", "max_epsilon")
_NUMBERS = ("epsilon", "rho", "delta", "max_epsilon")
_PLAIN = (str, int, bool, Decimal)
MOST_QUESTIONS = 100


def arguments_of(form: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the arguments of ``Session.query`` that a request body (parsed JSON) states.

    Numbers are texts or Decimals, so they count by their digits.

    Raises:
        WrongUse: a field has another type.

    >>> arguments_of({"sql": "SELECT 1", "epsilon": Decimal("0.10")})
    {'sql': 'SELECT 1', 'epsilon': Decimal('0.10')}
    """
    stated: dict[str, Any] = {}
    for name in PRICED:
        if form.get(name) is not None:
            stated[name] = form[name]
    if not isinstance(stated.get("sql"), str):
        raise WrongUse("A question without a statement.", allowed='"sql": "SELECT ..."')
    for name in _NUMBERS:
        if name in stated:
            require_number(name, stated[name])
    if "error" in stated:
        stated["error"] = _error(stated["error"])
    if "interval" in stated and not isinstance(stated["interval"], bool):
        raise WrongUse("interval that is no true or false.")
    if "values" in stated:
        if stated["values"] not in ("table", "clipped"):
            raise WrongUse(f"values={shown(stated['values'])}.", allowed='"table" or "clipped"')
        if stated.pop("values") == "clipped":
            stated["values"] = sf.Clipped
    if "parameters" in stated:
        _require_parameters(stated["parameters"])
    return stated


def cost_arguments_of(form: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the cost arguments (epsilon, rho, ..., error) that a request body states.

    Raises:
        WrongUse: one of them is no number.

    >>> cost_arguments_of({"table": "people", "rho": "0.1"})
    {'rho': '0.1'}
    """
    cost = {}
    for name in _NUMBERS:
        if form.get(name) is not None:
            cost[name] = require_number(name, form[name])
    if form.get("error") is not None:
        cost["error"] = _error(form["error"])
    return cost


def cells_of(form: Mapping[str, Any]) -> tuple[str, list[list[str]]]:
    """Returns the table and the column sets of the marginals that a request body asks for.

    Raises:
        WrongUse: they are no text and no list of lists of names.
    """
    table, cliques = form.get("table"), form.get("cliques")
    if not isinstance(table, str):
        raise WrongUse("Marginals without a table.", allowed='"table": "people"')
    if not isinstance(cliques, list) or not all(_is_names(clique) for clique in cliques):
        raise WrongUse("cliques of another form.", allowed='"cliques": [["age", "sex"]]')
    return table, cliques


def _is_names(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def require_statements(value: object) -> dict[str, str]:
    """Checks the SQL questions of a publication in a request body; returns them by name.

    Raises:
        WrongUse: it is no object of statements, or has more than 100.
    """
    allowed = f'"questions": {{"age": "SELECT ..."}}, at most {MOST_QUESTIONS}'
    if not isinstance(value, Mapping) or not 0 < len(value) <= MOST_QUESTIONS:
        raise WrongUse("questions of another form.", allowed=allowed)
    if not all(isinstance(statement, str) for statement in value.values()):
        raise WrongUse("A question that is no text.", allowed=allowed)
    return dict(value)


def require_number(name: str, value: object) -> Any:
    """Returns a value of a request body unchanged, if it is a string or a JSON number."""
    if isinstance(value, bool) or not isinstance(value, str | int | Decimal):
        raise WrongUse(f"{name} that is no number.", allowed=f'"{name}": "0.1"')
    return value


def _error(value: Any) -> Any:
    """A wanted error: a number, a percentage, or {"on_average": number}."""
    if isinstance(value, Mapping) and list(value) == ["on_average"]:
        return sf.OnAverage(require_number("error", value["on_average"]))
    return require_number("error", value)


def _require_parameters(value: Any) -> None:
    values: Any = None
    if isinstance(value, Mapping):
        values = value.values()
    elif isinstance(value, list):
        values = value
    if values is None or not all(isinstance(each, _PLAIN) for each in values):
        raise WrongUse(
            "parameters of another form.", allowed="a list or an object of texts and numbers"
        )


def time_limit_of(form: Mapping[str, Any]) -> float | None:
    """Returns the time limit that a request body states, in seconds; None if it has none.

    Raises:
        WrongUse: it is no number.
    """
    value = form.get("time_limit")
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise WrongUse("time_limit that is no number.", allowed="seconds, more than 0")
    return float(value)
