# SPDX-License-Identifier: Apache-2.0
"""Messages are taken from their author alone, for their run alone."""

import json

import pytest

from sfumato.errors import InvalidDeclaration
from sfumato.federated.messages import Message, canonical, run_of, verified
from tests.contracts.studies import identities, publics

KEYS = identities("anne", "north", "analyst")
PROPOSAL = {"study": "s", "rho": "0.1", "sites": ["anne", "north"]}


def test_a_message_survives_its_line():
    message = Message("approved", "r" * 64, "anne", {"why": "é", "n": 1})
    assert verified(message.signed(KEYS["anne"]), publics(KEYS)) == message


def test_a_proposal_is_named_by_all_that_it_says():
    message = Message("proposed", run_of(PROPOSAL), "analyst", PROPOSAL)
    assert verified(message.signed(KEYS["analyst"]), publics(KEYS)) == message
    dearer = PROPOSAL | {"rho": "0.2"}
    assert run_of(dearer) != run_of(PROPOSAL) == run_of(dict(reversed(PROPOSAL.items())))
    with pytest.raises(InvalidDeclaration):
        # another price under the same id
        verified(
            Message("proposed", run_of(PROPOSAL), "analyst", dearer).signed(KEYS["analyst"]),
            publics(KEYS),
        )


@pytest.mark.parametrize(
    ("message", "signer"),
    [
        (Message("approved", "r", "anne", {}), "north"),
        (Message("approved", "r", "analyst", {}), "analyst"),
        (Message("cancelled", "r", "anne", {}), "anne"),
        (Message("proposed", run_of(PROPOSAL), "anne", PROPOSAL), "anne"),
        (Message("approved", "r", "nobody", {}), "anne"),
        (Message("unheard", "r", "anne", {}), "anne"),
        (Message("approved", 3, "anne", {}), "anne"),
    ],
    ids=str,
)
def test_who_speaks_for_others_is_refused(message, signer):
    try:
        line = message.signed(KEYS[signer])
    except (TypeError, ValueError):
        line = canonical({"text": canonical({"kind": "approved", "run": "r", "author": "anne"})})
    with pytest.raises(InvalidDeclaration):
        verified(line, publics(KEYS))


def test_an_edited_line_is_refused():
    line = Message("approved", "r" * 64, "anne", {}).signed(KEYS["anne"])
    form = json.loads(line)
    for edited in (
        form | {"text": form["text"].replace("rr", "ss")},
        form | {"signature": "00"},
        form | {"signature": "no"},
        {"text": form["text"]},
        [],
        3,
    ):
        with pytest.raises(InvalidDeclaration):
            verified(json.dumps(edited), publics(KEYS))
    for text in ("", "{", "[" * 100_000):
        with pytest.raises(InvalidDeclaration):
            verified(text, publics(KEYS))
