# SPDX-License-Identifier: Apache-2.0
"""The answers of a study: which answer of a question counts, for all who read the messages."""

from base64 import b64decode
from contextlib import suppress
from dataclasses import dataclass, field

from sfumato.federated.messages import Body, Message


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer that a site has sent, and the id of its run."""

    run: str
    body: bytes


@dataclass(slots=True)
class Answers:
    """The answer of each question of a study: the first one that a site of one of its runs has sent.

    Sites may have stored different answers to a question: one stores it and is away, the others
    lose it and pay again. All who hear the coordinator's messages in their order agree on the first.

    Guarantees:
        a question has one answer
    """

    _runs: dict[str, tuple[str, frozenset[str]]] = field(default_factory=dict)
    _first: dict[str, Answered] = field(default_factory=dict)

    def hear(self, message: Message) -> None:
        """Takes note of a message; the messages come in the coordinator's order."""
        run, sites = message.run, message.body.get("sites")
        if message.kind == "proposed" and isinstance(sites, list):
            named = frozenset(str(name) for name in sites)
            self._runs.setdefault(run, (question_of(message.body), named))
        elif message.kind == "answered" and run in self._runs:
            question, named = self._runs[run]
            text = message.body.get("answer")
            if message.author in named and isinstance(text, str):
                with suppress(ValueError):
                    body = b64decode(text, validate=True)
                    self._first.setdefault(question, Answered(run, body))

    def to(self, question: str) -> Answered | None:
        """Returns the answer to a question by its id, ``question_of`` a proposal."""
        return self._first.get(question)


def question_of(proposal: Body) -> str:
    """Returns the id of the question of a proposal: all its runs have it.

    >>> question_of({"form": "ab", "event": "cd", "attempt": "1"})
    'ab cd'
    """
    return f"{proposal.get('form')} {proposal.get('event')}"
