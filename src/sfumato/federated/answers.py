# SPDX-License-Identifier: Apache-2.0
"""The answers of a study: which answer of a question counts, for all who read the messages."""

from base64 import b64decode
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeAlias

from cryptography.hazmat.primitives.asymmetric import ec

from sfumato.errors import InvalidDeclaration
from sfumato.federated.declaration import Declared
from sfumato.federated.encryption import opened_answer
from sfumato.federated.messages import Body, Message
from sfumato.privacy.event import Json

Opened: TypeAlias = Callable[[Json, bytes], bytes]


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer that a site has sent, and the id of its run."""

    run: str
    body: bytes


def _in_the_clear(sealed: Json, body: bytes) -> bytes:
    return body


@dataclass(slots=True)
class Answers:
    """The answers to the questions of a study: for each question the first that a site has sent.

    Sites may have stored different answers to a question: one stores it and is away, the others
    lose it and pay again. All who hear the coordinator's messages in their order agree on the first.

    ``opened`` decrypts an answer with the sealed keys of its run; those that do not open are left
    out.

    Guarantees:
        a question has one answer
    """

    opened: Opened = _in_the_clear
    _runs: dict[str, tuple[str, frozenset[str], Json]] = field(default_factory=dict)
    _first: dict[str, Answered] = field(default_factory=dict)

    @classmethod
    def of(cls, study: Declared, name: str, key: ec.EllipticCurvePrivateKey) -> "Answers":
        """Returns an empty record of a study's answers, which decrypts them with a party's key if
        needed.

        ``name`` is the party: a site or the analyst.
        """
        if not study.is_encrypted:
            return cls()
        return cls(lambda sealed, body: opened_answer(sealed, study.terms.study, name, key, body))

    def hear(self, message: Message) -> None:
        """Adds the answer in a message of the study, if it has one; call it in the coordinator's
        order.
        """
        run, sites = message.run, message.body.get("sites")
        if message.kind == "proposed" and isinstance(sites, list):
            named = frozenset(str(name) for name in sites)
            encryption = message.body.get("encryption")
            sealed = encryption.get("sealed") if isinstance(encryption, dict) else None
            self._runs.setdefault(run, (question_of(message.body), named, sealed))
        elif message.kind == "answered" and run in self._runs:
            question, named, sealed = self._runs[run]
            text = message.body.get("answer")
            if message.author in named and isinstance(text, str):
                with suppress(ValueError, InvalidDeclaration):
                    body = self.opened(sealed, b64decode(text, validate=True))
                    self._first.setdefault(question, Answered(run, body))

    def to(self, question: str) -> Answered | None:
        """Returns the first answer that a site sent to a question; None if there is none.

        ``question`` is the question's id, as ``question_of`` computes it from a proposal.
        """
        return self._first.get(question)


def question_of(proposal: Body) -> str:
    """Returns the id of the question that a proposal asks, equal for all runs of the same question.

    >>> question_of({"form": "ab", "event": "cd", "attempt": "1"})
    'ab cd'
    """
    return f"{proposal.get('form')} {proposal.get('event')}"
