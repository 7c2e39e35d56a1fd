# SPDX-License-Identifier: Apache-2.0
"""The keys for a cost that several sections share, which options of a command replace."""

from collections.abc import Mapping, Sequence
from typing import Any

from sfumato.config.section import Key, number

COST = (
    Key("epsilon", number, '"0.5"', "what it costs, with Laplace noise", None),
    Key("rho", number, '"0.02"', "what it costs, with Gaussian noise", None),
    Key("delta", number, '"1e-6"', "what it costs beside epsilon", None),
)


def cost_of(
    form: Mapping[str, Any], given: Mapping[str, str | None], keys: Sequence[Key] = COST
) -> dict[str, Any]:
    """Returns the keyword arguments of a privacy cost: those in ``given``, else those of ``form``.

    ``form`` is the TOML section and ``given`` the options of a command. A cost is replaced as a
    whole.

    >>> cost_of({"table": "people", "rho": "0.1"}, {"epsilon": None})
    {'rho': '0.1'}
    >>> cost_of({"table": "people", "rho": "0.1"}, {"epsilon": "1"})
    {'epsilon': '1'}
    """
    prices: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    names = [key.name for key in keys]
    return prices or {name: form[name] for name in names if form.get(name) is not None}
