# SPDX-License-Identifier: Apache-2.0
"""The declaration of a task for devices in a ``sfumato.toml``: ``[telemetry.<name>]``."""

from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from sfumato.errors import InvalidConfig
from sfumato.exact.rational import Number
from sfumato.metadata.column import Integer, Real
from sfumato.query.load import read_section
from sfumato.telemetry import ReportTask, oracles, report_task
from sfumato.telemetry.domain import OTHER, domain_of
from sfumato.telemetry.oracles.form import AnyOracle

_FIELDS = {"report_bytes", "period", "periods", "reports", "memory", "min_batch", "other"}
_DOMAIN = {"values", "lower", "upper", "step"}
_KEYS = {"question", "epsilon", "start", "oracle", "aggregator", *_FIELDS, *_DOMAIN}
# What makes the oracle of a name; without one, that of least variance is taken.
_ORACLES: Mapping[str, Callable[[int, Number], AnyOracle]] = {
    "bit": oracles.bit,
    "category": oracles.category,
    "hashed": oracles.hashed,
    "levels": oracles.levels,
    "mean": oracles.mean,
    "projective": oracles.projective,
    "unary": oracles.unary,
}


def read_task(path: str, name: str) -> ReportTask:
    """The task of ``[telemetry.<name>]``; without ``oracle``, that of least variance.

    ``values`` is a list of texts; ``lower`` and ``upper`` declare whole numbers, with ``step``
    multiples of it. ``start`` is a time with its offset, ``aggregator`` the file of a public key.

    Raises:
        InvalidConfig: a key is unknown or missing, or its value has another form.
        InvalidDeclaration: the task cannot be.
    """
    declared = read_section(path, "telemetry")
    if name not in declared:
        raise InvalidConfig(
            f"No task {name!r} in {path}.", allowed=", ".join(declared) or "[telemetry.NAME]"
        )
    form = declared[name]
    missing = {"question", "epsilon", "start", "periods"} - form.keys()
    unknown = form.keys() - _KEYS
    if unknown or missing:
        raise InvalidConfig(
            f"telemetry.{name}: unknown {', '.join(sorted(unknown)) or 'none'}; "
            f"missing {', '.join(sorted(missing)) or 'none'}.",
            allowed=", ".join(sorted(_KEYS)),
        )
    fields = {key: form[key] for key in _FIELDS if key in form}
    domain = _domain(name, form)
    if "oracle" in form:
        fields["oracle"] = _oracle(name, form, domain_of(domain, fields.get("other", OTHER)).size)
    else:
        fields["epsilon"] = str(form["epsilon"])
    if "aggregator" in form:
        fields["aggregator"] = Path(path).parent / str(form["aggregator"])
    return report_task(
        name,
        form["question"],
        domain,
        start=_second(name, form["start"]),
        **fields,
    )


def _oracle(name: str, form: Mapping[str, Any], values: int) -> AnyOracle:
    """The oracle of a name, for so many values."""
    if form["oracle"] not in _ORACLES:
        raise InvalidConfig(
            f"telemetry.{name}: the oracle {form['oracle']!r}.", allowed=", ".join(_ORACLES)
        )
    return _ORACLES[form["oracle"]](values, str(form["epsilon"]))


def _domain(name: str, form: Mapping[str, Any]) -> list[str] | Integer | Real:
    """The values that devices may hold."""
    given = _DOMAIN & form.keys()
    if given == {"values"} and isinstance(form["values"], list):
        return list(form["values"])
    if given == {"lower", "upper"}:
        return Integer(form["lower"], form["upper"])
    if given == {"lower", "upper", "step"}:
        return Real(form["lower"], form["upper"], step=form["step"])
    raise InvalidConfig(
        f"The values of telemetry.{name}.",
        allowed="values = [...], or lower and upper, or lower, upper and step",
    )


def _second(name: str, start: object) -> int:
    """A time with an offset as seconds since 1970."""
    if not isinstance(start, datetime) or start.tzinfo is None or start.microsecond:
        raise InvalidConfig(
            f"The start of telemetry.{name}.", allowed="start = 2027-01-01T00:00:00Z"
        )
    return int(start.timestamp())
