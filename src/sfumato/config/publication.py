# SPDX-License-Identifier: Apache-2.0
"""Reads a publication file for ``sfumato publish``.

It has questions with names, titles and weights, and one cost for all of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfumato.config.section import Key, number, read, table, text, whole
from sfumato.config.toml_file import read_toml
from sfumato.errors import InvalidConfig


def _wanted_error(value: Any) -> int | str:
    """Reads an error: a number, or a percentage of a public number."""
    if isinstance(value, str) and value.endswith("%"):
        number(value.removesuffix("%"))
        return value
    return number(value)


COST = (
    Key("epsilon", number, '"0.5"', "what all questions cost, with Laplace noise", None),
    Key("rho", number, '"0.02"', "the same with Gaussian noise, in place of epsilon", None),
    Key("delta", number, '"1e-6"', "for groups that are not public", None),
    Key("error", _wanted_error, '"5%"', "a wanted error in every cell, in place of a cost", None),
    Key("max_epsilon", number, '"0.5"', "the most that a question with an error may cost", None),
)
PUBLICATION = (
    Key("title", str, '"Work and age, 2019"', "the title of the page; by default its file", None),
    Key("questions", table, '{people = {sql = "SELECT ..."}}', "the questions by name"),
    *COST,
)
QUESTION = (
    Key("sql", text, '"SELECT ..."', "the statement"),
    Key("title", str, '"Mean age"', "the title of its table; by default its name", None),
    Key("weight", number, "2", "its share of the cost, beside 1 of others", None),
    Key("size", whole, "300", "rows of a group whose error counts, in place of weights", None),
)


@dataclass(frozen=True, slots=True)
class PublicationConfig:
    """The declaration of a publication: SQL questions that are planned together, and their options.

    Each kind of option is a mapping by question name.

    ``cost`` has the keyword arguments of ``Session.plan`` for the cost.
    """

    title: str
    statements: Mapping[str, str]
    titles: Mapping[str, str]
    weights: Mapping[str, Any]
    sizes: Mapping[str, Any]
    cost: Mapping[str, Any]


def read_publication(path: str) -> PublicationConfig:
    """Reads a publication from a file of its own.

    Raises:
        InvalidConfig: it cannot be read, or a key is unknown, missing or has a wrong value.
    """
    form = read(read_toml(path), path, PUBLICATION)
    if not form["questions"]:
        raise InvalidConfig(
            f"{path}: no question.", remedy='[questions.NAME] with sql = "SELECT ..."'
        )
    questions = {}
    for name, question in form["questions"].items():
        # a table is written to a file of this name
        if not name.replace("-", "").replace("_", "").isalnum():
            raise InvalidConfig(f"{path}: the name {name!r}.", allowed="letters, digits, - and _")
        questions[name] = read(question, f"questions.{name}", QUESTION)

    def stated(key: str) -> dict[str, Any]:
        return {name: form[key] for name, form in questions.items() if form[key] is not None}

    return PublicationConfig(
        form["title"] or Path(path).stem,
        stated("sql"),
        {**{name: name for name in questions}, **stated("title")},
        stated("weight"),
        stated("size"),
        {key.name: form[key.name] for key in COST if form[key.name] is not None},
    )
