# SPDX-License-Identifier: Apache-2.0
"""sfumato: questions about personal data, answered with differential privacy.

Start with ``sf.Table``, ``sf.Budget`` and ``sf.connect``; read on in ``sfumato.query``.
The names and rooms below are loaded when first used, so that ``import sfumato`` costs nothing.

>>> import sfumato as sf
>>> sf.Budget(epsilon=1)
Budget(epsilon=1, delta=0)
>>> sf.learning.NaiveBayes(bins=4).bins
4
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sfumato import audit as audit
    from sfumato import examples as examples
    from sfumato import learning as learning
    from sfumato import synopsis as synopsis
    from sfumato import synthetic as synthetic
    from sfumato import telemetry as telemetry
    from sfumato.config.load import load as load
    from sfumato.engines.local import Local as Local
    from sfumato.engines.prepare import prepare as prepare
    from sfumato.engines.spark import Spark as Spark
    from sfumato.engines.stop import Stop as Stop
    from sfumato.errors import SfumatoError as SfumatoError
    from sfumato.metadata.clip import Clipped as Clipped
    from sfumato.metadata.column import Array as Array
    from sfumato.metadata.column import Boolean as Boolean
    from sfumato.metadata.column import Category as Category
    from sfumato.metadata.column import Date as Date
    from sfumato.metadata.column import Integer as Integer
    from sfumato.metadata.column import Real as Real
    from sfumato.metadata.column import Text as Text
    from sfumato.metadata.table import Table as Table
    from sfumato.metadata.timestamp import Timestamp as Timestamp
    from sfumato.metadata.tokens import Tokens as Tokens
    from sfumato.privacy.budget import Budget as Budget
    from sfumato.privacy.unit import AUTO as AUTO
    from sfumato.privacy.unit import AddRemove as AddRemove
    from sfumato.privacy.unit import Edge as Edge
    from sfumato.privacy.unit import Node as Node
    from sfumato.privacy.unit import ReplaceOne as ReplaceOne
    from sfumato.privacy.unit import Unit as Unit
    from sfumato.query.answer import Answer as Answer
    from sfumato.query.connect import connect as connect
    from sfumato.query.dataframe import col as col
    from sfumato.query.dataframe import count as count
    from sfumato.query.preview import Preview as Preview
    from sfumato.query.price import OnAverage as OnAverage
    from sfumato.query.session import Session as Session
    from sfumato.web.client import remote as remote

__version__ = "0.1.0"

_HOME = {
    "AUTO": "privacy.unit",
    "AddRemove": "privacy.unit",
    "Answer": "query.answer",
    "Array": "metadata.column",
    "Boolean": "metadata.column",
    "Budget": "privacy.budget",
    "Category": "metadata.column",
    "Clipped": "metadata.clip",
    "Date": "metadata.column",
    "Edge": "privacy.unit",
    "Integer": "metadata.column",
    "Local": "engines.local",
    "Node": "privacy.unit",
    "OnAverage": "query.price",
    "Preview": "query.preview",
    "Real": "metadata.column",
    "ReplaceOne": "privacy.unit",
    "Session": "query.session",
    "SfumatoError": "errors",
    "Spark": "engines.spark",
    "Stop": "engines.stop",
    "Table": "metadata.table",
    "Text": "metadata.column",
    "Timestamp": "metadata.timestamp",
    "Tokens": "metadata.tokens",
    "Unit": "privacy.unit",
    "col": "query.dataframe",
    "connect": "query.connect",
    "count": "query.dataframe",
    "load": "config.load",
    "prepare": "engines.prepare",
    "remote": "web.client",
}

# Rooms that are used by their names.
_MODULES = ("audit", "examples", "graph", "learning", "synopsis", "synthetic", "telemetry")

__all__ = [*_HOME, "__version__"]


def __getattr__(name: str) -> object:
    value: object
    if name in _MODULES:
        value = import_module(f"sfumato.{name}")
    elif name in _HOME:
        value = getattr(import_module(f"sfumato.{_HOME[name]}"), name)
    else:
        raise AttributeError(f"module 'sfumato' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME, *_MODULES})
