# SPDX-License-Identifier: Apache-2.0
"""Asks the pinned questions, and keeps what is stored of each: its forms, its event, its keys."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

from sfumato.plan.show import form
from sfumato.privacy.event import event_to_json
from sfumato.query import charge, paid_series, series
from sfumato.query.asker import Asker
from sfumato.query.release import Asked
from sfumato.query.task import Names, named
from tests.stored.questions import Question

# Makes a stored text again, from the objects of a question.
Maker = Callable[[], str]


@dataclass
class Stored:
    """What is stored of a question: texts by their name, each with what makes it, and keys."""

    makers: dict[str, Maker] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    keys: list[str] = field(default_factory=list)

    def add(self, name: str, make: Maker) -> None:
        """Adds a text, unless it is there already: a question is planned several times."""
        text = make()
        if text not in self.texts.values():
            place = f"{name} {1 + sum(each.startswith(name) for each in self.texts)}"
            self.makers[place], self.texts[place] = make, text

    def add_keys(self, *keys: str) -> None:
        """Adds keys that are not there already."""
        self.keys += [key for key in dict.fromkeys(keys) if key and key not in self.keys]

    def to_json(self) -> Mapping[str, Any]:
        """As it is pinned."""
        return {"keys": self.keys, "texts": self.texts}


@contextmanager
def recorded() -> Iterator[Stored]:
    """What is stored of the questions that are asked in the block."""
    stored = Stored()
    known, of = Asker.names, Asked.of

    def names_of(task: Any) -> tuple[str, str]:
        stored.add(f"form of {task.kind}", lambda: str(task.form))
        return named(task)

    def names(asker: Asker, kind: str, text: str, event: Any) -> Names:
        made = known(asker, kind, text, event)
        stored.add("event", lambda: _event(event))
        stored.add_keys(made.question, made.statement, made.shared)
        return made

    def asked(planned: Any, asker: Asker) -> Asked:
        made = of(planned, asker)
        stored.add("plan", lambda: form(planned.plan))
        stored.add("output", lambda: form(planned.question.output))
        stored.add("event", lambda: _event(planned.event))
        stored.add_keys(made.question, made.statement, made.shared, *made.parts)
        return made

    with ExitStack() as block:
        for module in (charge, series, paid_series):
            block.enter_context(patch.object(module, "named", names_of))
        block.enter_context(patch.object(Asker, "names", names))
        block.enter_context(patch.object(Asked, "of", staticmethod(asked)))
        yield stored


def ask(question: Question, session: Any) -> tuple[Any, Stored]:
    """The answer to a question, and what is stored of it."""
    with recorded() as stored:
        answer = question(session)
    return answer, stored


def _event(event: Any) -> str:
    """The JSON of an event, as it is stored."""
    return json.dumps(event_to_json(event), sort_keys=True, separators=(",", ":"))
