# SPDX-License-Identifier: Apache-2.0
"""A publication in a file of its own: questions with names, titles and weights, and one cost."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfumato.errors import InvalidConfig
from sfumato.metadata.side_file import side_text

_COSTS = ("epsilon", "rho", "delta", "error", "max_epsilon")
_ALLOWED = {"title", "questions", *_COSTS}
_OF_A_QUESTION = {"sql", "title", "weight", "size"}


@dataclass(frozen=True, slots=True)
class PublicationConfig:
    """The title, statements, titles, weights and sizes by name, and the arguments of the cost."""

    title: str
    statements: Mapping[str, str]
    titles: Mapping[str, str]
    weights: Mapping[str, Any]
    sizes: Mapping[str, Any]
    cost: Mapping[str, Any]


def read_publication(path: str) -> PublicationConfig:
    """Reads a publication.

    Raises:
        InvalidConfig: it cannot be read, a key is unknown, or a question has no statement.
    """
    form = _read(path)
    asked = form.get("questions")
    if not isinstance(asked, dict) or not asked or form.keys() - _ALLOWED:
        unknown = ", ".join(sorted(form.keys() - _ALLOWED)) or "none"
        raise InvalidConfig(
            f"{path}: unknown keys: {unknown}; it must have questions.",
            allowed=f'{", ".join(sorted(_ALLOWED))}; [questions.NAME] with sql = "SELECT ..."',
        )
    for name, question in asked.items():
        _require_question(path, name, question)
    weights = {name: each["weight"] for name, each in asked.items() if "weight" in each}
    return PublicationConfig(
        str(form.get("title", Path(path).stem)),
        {name: each["sql"] for name, each in asked.items()},
        {name: str(each.get("title", name)) for name, each in asked.items()},
        weights,
        {name: each["size"] for name, each in asked.items() if "size" in each},
        {key: form[key] for key in _COSTS if key in form},
    )


def _read(path: str) -> dict[str, Any]:
    """The file as TOML; decimals stay decimals."""
    try:
        return tomllib.loads(side_text(path), parse_float=str)
    except OSError as error:
        raise InvalidConfig(f"{path} cannot be read ({error.strerror}).") from None
    except tomllib.TOMLDecodeError as error:
        raise InvalidConfig(f"{path} is not TOML: {error}") from None


def _require_question(path: str, name: str, question: object) -> None:
    """Refuses a question without a statement, a key that is unknown, and a name that is a path."""
    if not name.replace("-", "").replace("_", "").isalnum():
        raise InvalidConfig(f"{path}: the name {name!r}.", allowed="letters, digits, - and _")
    known = isinstance(question, dict) and not question.keys() - _OF_A_QUESTION
    if not known or not isinstance(question, dict) or not isinstance(question.get("sql"), str):
        raise InvalidConfig(f"{path}: questions.{name}.", allowed=", ".join(sorted(_OF_A_QUESTION)))
