# SPDX-License-Identifier: Apache-2.0
"""Reads the section ``[telemetry.<name>]`` of a ``sfumato.toml``: a task for devices.

``sfumato telemetry`` uses it.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, TypeAlias

from sfumato.config.named_section import choose_section
from sfumato.config.section import Key, as_is, number, read, stated
from sfumato.config.telemetry_oracles import OracleConfig
from sfumato.errors import InvalidConfig, shown
from sfumato.metadata.column import Integer, Real
from sfumato.telemetry import Lattice, Listed, ReportTask, Texts, Words, oracles, report_task
from sfumato.telemetry.domain import OTHER, Declared, domain_of
from sfumato.telemetry.oracles.form import AnyOracle
from sfumato.telemetry.oracles.frequency import FREQUENCY, FrequencyOracle

Form: TypeAlias = Mapping[str, Any]
_FIELDS = (
    Key("report_bytes", as_is, "16", "the most bytes of a report", None),
    Key("period", as_is, "86400", "the seconds of a period", None),
    Key("periods", as_is, "28", "how many periods there are"),
    Key("reports", as_is, "1", "the reports of a device in a period", None),
    Key("memory", as_is, "7", "the periods for which one answer stands", None),
    Key("min_batch", as_is, "500", "the fewest reports that a shuffler sends", None),
    Key("other", as_is, '"(other)"', "what stands for every other value", None),
)
# The keys that declare the values of an attribute, and those of a task.
_SIMPLE = (
    Key("values", as_is, '["smile", "heart"]', "the values, as texts", None),
    Key("lower", as_is, "0", "the least number", None),
    Key("upper", as_is, "9", "the greatest number", None),
    Key("step", as_is, '"0.5"', "numbers are multiples of it", None),
)
_DOMAIN = (
    *_SIMPLE,
    Key("letters", as_is, '"abcdefghijklmnopqrstuvwxyz"', "the letters of texts", None),
    Key("length", as_is, "6", "their greatest length", None),
    Key("texts", as_is, "true", "all texts", None),
    Key("attributes", as_is, "{age = {lower = 0, upper = 9}}", "several of these, by name", None),
)
_ORACLE = Key("oracle", as_is, '"hashed"', "how devices answer; by default the best", None)
ATTRIBUTE = (*_SIMPLE, _ORACLE)
TELEMETRY = (
    Key("question", as_is, '"Which emoji did you use most?"', "what devices are asked"),
    Key("epsilon", number, '"1"', "what a device pays for one answer", None),
    Key("start", as_is, "2027-01-15T08:00:00Z", "when the first period begins"),
    Key("expires", as_is, "2027-02-15T08:00:00Z", "by default the end of the last period", None),
    Key("aggregator", str, '"aggregator.pem"', "the key for which reports are sealed", None),
    _ORACLE,
    *_FIELDS,
    *_DOMAIN,
)


def read_task(path: str, name: str) -> ReportTask:
    """Returns the local-DP collection task declared as ``[telemetry.<name>]``.

    Without ``oracle`` its values decide on the frequency oracle.

    One key states the values: ``values`` is a list of strings; ``lower`` and ``upper`` declare
    whole numbers, or with ``step`` multiples of it; ``texts = true`` means any string; ``letters``
    and ``length`` mean strings that are searched for; ``attributes`` is a table of several lists or
    numbers. ``oracle`` is a name, or a table of ``kind`` and options. ``start`` and ``expires`` are
    times with an offset, ``aggregator`` is the file of a public key.

    Raises:
        InvalidConfig: a key is unknown or missing, or its value has the wrong form.
        InvalidDeclaration: no task can have these values.
    """
    _, declared = choose_section(path, "telemetry", name)
    where = f"telemetry.{name}"
    form = stated(read(declared, where, TELEMETRY))
    fields = {key.name: form[key.name] for key in _FIELDS if key.name in form}
    domain = _domain(where, form)
    fields["oracle"] = _oracle(where, form, domain)
    fields.pop("report_bytes", None)
    if "aggregator" in form:
        fields["aggregator"] = Path(path).parent / str(form["aggregator"])
    if "expires" in form:
        fields["expires"] = _second(where, "expires", form)
    return report_task(
        name,
        form["question"],
        domain,
        start=_second(where, "start", form),
        **fields,
    )


def _oracle(where: str, form: Form, domain: Declared) -> AnyOracle:
    """The oracle of a task, or of all its attributes."""
    epsilon = str(form["epsilon"]) if "epsilon" in form else None
    sized = {"report_bytes": form["report_bytes"]} if "report_bytes" in form else {}
    oracle_config = OracleConfig(where, form.get("oracle"), epsilon, **sized)
    if isinstance(domain, Mapping):
        if oracle_config.named not in (None, "attributes"):
            raise InvalidConfig(
                f"{where}: the oracle {shown(oracle_config.named)} of several attributes.",
                allowed="an oracle in the table of an attribute, or none",
            )
        return oracles.attributes(_attribute_oracles(oracle_config, form))
    values = domain_of(domain, form.get("other", OTHER))
    assert isinstance(values, Listed | Lattice | Texts | Words), "a task of one attribute"
    return oracle_config.of(values)


def _attribute_oracles(oracle_config: OracleConfig, form: Form) -> list[FrequencyOracle]:
    """The oracle of each attribute."""
    attribute_oracles = []
    for name, each in form["attributes"].items():
        where = f"{oracle_config.where}.attributes.{name}"
        values = domain_of(_simple_domain(where, each), form.get("other", OTHER))
        assert isinstance(values, Listed | Lattice), "values that are listed, or numbers"
        own = replace(oracle_config, where=where, named=each.get("oracle"))
        part = own.of(values)
        if not isinstance(part, FREQUENCY):
            raise InvalidConfig(
                f"{where}: the oracle {part.kind!r} of an attribute.",
                allowed=", ".join(kind.kind for kind in FREQUENCY),
            )
        attribute_oracles.append(part)
    return attribute_oracles


def _domain(where: str, form: Form) -> Declared:
    """The domain of a task: the values that devices may report."""
    domain_keys = {key.name for key in _DOMAIN} & form.keys()
    if domain_keys == {"texts"} and form["texts"] is True:
        return Texts()
    if domain_keys == {"letters", "length"} and isinstance(form["letters"], str):
        return Words(form["letters"], form["length"])
    if domain_keys == {"attributes"} and isinstance(form["attributes"], Mapping):
        return {
            name: _simple_domain(f"{where}.attributes.{name}", each)
            for name, each in form["attributes"].items()
        }
    if domain_keys <= {key.name for key in _SIMPLE}:
        return _simple_domain(where, {key: form[key] for key in domain_keys})
    raise InvalidConfig(
        f"The values of {where}.",
        allowed="values = [...]; lower and upper, with step or without; texts = true; "
        "letters and length; or attributes",
    )


def _simple_domain(where: str, form: object) -> list[str] | Integer | Real:
    """The domain of a task or of one attribute: a list of strings, or numbers."""
    form = stated(read(form, where, ATTRIBUTE))
    domain_keys = {key.name for key in _SIMPLE} & form.keys()
    if domain_keys == {"values"} and isinstance(form["values"], list):
        return list(form["values"])
    if domain_keys == {"lower", "upper"}:
        return Integer(form["lower"], form["upper"])
    if domain_keys == {"lower", "upper", "step"}:
        return Real(form["lower"], form["upper"], step=form["step"])
    raise InvalidConfig(
        f"The values of {where}.",
        allowed="values = [...], or lower and upper, or lower, upper and step",
    )


def _second(where: str, key: str, form: Form) -> int:
    """A time with an offset as seconds since 1970."""
    moment = form[key]
    if not isinstance(moment, datetime) or moment.tzinfo is None or moment.microsecond:
        raise InvalidConfig(
            f"{where}: {key} is no time of this form.",
            allowed=f"{key} = 2027-01-01T00:00:00Z",
        )
    return int(moment.timestamp())
