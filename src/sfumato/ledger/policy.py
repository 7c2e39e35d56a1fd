# SPDX-License-Identifier: Apache-2.0
"""The owner's decisions about an account besides its limit.

They are whether answers are shared, whether accounts must be opened by the owner (listed names),
and where the data is stored. They are canonical JSON in the column ``policy`` of the account.
Journal entries change them key by key, so that they follow from the journal alone.
"""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from sfumato.errors import ContractMismatch, NotListed
from sfumato.ledger.account_path import Scope
from sfumato.ledger.journal import LEGACY, Entry, canonical_json
from sfumato.ledger.store.base import AccountRow, Rows
from sfumato.privacy.event import Json

# Of a dataset: whether an answer that one analyst paid for is shared with others.
SHARING = "sharing"
# Of a dataset: whether only opened accounts may spend, or any name.
CLOSED = "closed"
# Of a dataset or a purpose: that an account below it has been given a limit.
LISTED = "listed"
# Of a dataset: the limits that are part of the answer keys of formats before 4.
PAST = "past_limits"
# Of a dataset: the places of its data.
SOURCES = "sources"

DECISIONS = (SHARING, CLOSED, LISTED, PAST, SOURCES)


def decided(row: AccountRow) -> dict[str, Any]:
    """Returns the owner's decisions about an account besides its limit, as stored in its row."""
    decisions: dict[str, Any] = json.loads(row.policy) if row.policy else {}
    return decisions


def with_policy(row: AccountRow, more: Mapping[str, Json]) -> AccountRow:
    """Returns an account's row with some of the owner's decisions changed."""
    return row._replace(policy=merged(row.policy, more))


def merged(policy: str, more: Mapping[str, Json]) -> str:
    """Returns the owner's decisions, as the stored string, with some of them changed.

    >>> merged('{"sharing":true}', {"closed": False})
    '{"closed":false,"sharing":true}'
    """
    return canonical_json({**json.loads(policy or "{}"), **more})


def to_list(path: Iterable[AccountRow]) -> list[str]:
    """Returns the ids of the accounts of a path below which no account ever had a limit."""
    return [row.id for row in path if not decided(row).get(LISTED)]


def require_listed(lineage: Sequence[str], stored: Mapping[str, AccountRow]) -> None:
    """Refuses a path to an account that must be opened by the owner, and was not.

    If the owner has closed the dataset, only stored accounts may spend: those that the owner
    opened, and those that existed before. If the owner has not decided, the same holds beside every
    account that was ever given a limit, so that no other name evades that limit.

    Raises:
        NotListed: the path leads to an account that nobody has opened.
    """
    closed = decided(stored[lineage[0]]).get(CLOSED)
    if closed is False:
        return
    for parent, account_id in pairwise(lineage):
        above = stored.get(parent)
        if account_id not in stored and (
            closed or (above is not None and decided(above).get(LISTED))
        ):
            raise NotListed(
                f"The account {account_id!r} is not on the owner's list.",
                allowed=f"the accounts below {parent!r} that the owner has opened",
                remedy="The owner opens it (sfumato ledger allocate), or lets anybody ask "
                "([budget] closed = false).",
            )


def earlier_acts(rows: Rows, dataset: str) -> list[Entry]:
    """Returns the owner's commands on a dataset from the journal, those of ledger format 1
    first.
    """
    return [act for act in rows.acts(LEGACY) if _dataset(act) == dataset] + rows.acts(dataset)


def past_limits(acts: Iterable[Entry]) -> list[list[str]]:
    """Returns all limits (epsilon, delta) that a dataset had, oldest first, without repeats.

    ``acts`` are the journal entries of the owner's commands.
    """
    limits: list[list[str]] = []
    for act in acts:
        body = json.loads(act.body)
        limit = _limit(act.kind, body)
        if limit is not None and limit not in limits:
            limits.append(limit)
    return limits


def _limit(kind: str, body: Mapping[str, Any]) -> list[str] | None:
    """The limit that an entry gives a dataset; None if it gives none."""
    if kind == "account":
        limit = body.get("limit") or body["contract"]
    elif kind in ("allocate", "refresh") and not Scope.of(body["account"]).parent:
        limit = body["limit"]
    else:
        return None
    return [limit["epsilon"], limit["delta"]]


def limited_accounts(acts: Iterable[Entry]) -> list[str]:
    """Returns the ids of a dataset's accounts to which journal entries ever gave a limit.

    The dataset's own account is not among them.
    """
    given = (json.loads(act.body)["account"] for act in acts if act.kind in ("allocate", "refresh"))
    return sorted({account_id for account_id in given if Scope.of(account_id).parent})


def _dataset(act: Entry) -> str:
    """The account of the dataset of an entry of format 1."""
    body = json.loads(act.body)
    return Scope(body["contract"]["dataset"] if act.kind == "account" else body["dataset"]).id


def shared_sources(rows: Rows, dataset: str, sources: Collection[str]) -> list[str]:
    """Returns the names of other datasets in the ledger that read one of the given data sources."""
    roots = [chain for chain in rows.chains() if chain not in (LEGACY, dataset)]
    datasets = ((root, rows.account(root)) for root in roots)
    return [
        dataset
        for dataset, row in datasets
        if row is not None and set(sources) & set(decided(row).get(SOURCES, ()))
    ]


def same_people(dataset: str, others: Sequence[str]) -> ContractMismatch:
    """Returns the error for a dataset with the same data source as the datasets ``others``."""
    return ContractMismatch(
        f"Data of {dataset!r} is data of {', '.join(map(repr, others))} too, in the same ledger: "
        "another name is no fresh budget for the same people.",
        remedy="Use the name that the data has already. If these are other people, say why: "
        'connect(other_people="..."), or other_people = "..." in sfumato.toml; the journal keeps '
        "it.",
    )
