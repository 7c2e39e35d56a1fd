# SPDX-License-Identifier: Apache-2.0
"""Requests to charge an account, and what the ledger computes of them before it takes a lock."""

import hashlib
import re
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache

from sfumato.accounting.account import relations_of
from sfumato.accounting.budget_gates import NOTHING, Charge
from sfumato.accounting.order_price import price
from sfumato.errors import InvalidNumber, WrongUse
from sfumato.ledger.account_path import LONGEST_KEY, UNSTATED, Scope, require_storable
from sfumato.ledger.balance import charge_text, charge_to_json
from sfumato.ledger.journal import canonical_json
from sfumato.ledger.store.base import RESERVED, ChargeRow
from sfumato.privacy.event import Event, Json, event_to_json

# The kind of a question in SQL; the journal omits it.
SQL = "sql"
_KIND = re.compile(r"[a-z][a-z_]{0,29}")
# In bytes of UTF-8.
LONGEST_LINE = 1000


@dataclass(frozen=True, slots=True)
class Keys:
    """The cache keys of a question as an earlier ledger format computed them; fields as in
    ``Request``.
    """

    question: str
    statement: str
    shared: str = ""


@dataclass(frozen=True, slots=True)
class Request:
    """A request to charge an account for one question.

    ``question`` is the key of the answer for one account, ``shared`` that of the same question for
    any account ("" if it may not be shared), ``statement`` that of the statement at any cost.
    ``key`` is the caller's idempotency key, if any. ``earlier`` are the keys under which earlier
    formats may have stored the answer; it is looked up by them and never stored under them.
    ``kind`` is the kind of question, and ``line`` describes it in the log and the report, from
    declarations alone. ``scope`` is the analyst's account.

    Raises:
        WrongUse: a name or a key that cannot be stored: a control character, more than 200 bytes
            of UTF-8 in a name, 255 in a key or 1,000 in a line; a kind that is no plain word.

    >>> from fractions import Fraction
    >>> from sfumato.privacy import PureEvent
    >>> Request("tiny", "ann", "key", "statement", PureEvent(Fraction(1, 2))).scope.id
    'tiny/unstated/ann'
    """

    dataset: str
    analyst: str
    question: str
    statement: str
    event: Event
    purpose: str = UNSTATED
    shared: str = ""
    key: str = ""
    earlier: tuple[Keys, ...] = ()
    kind: str = SQL
    line: str = ""
    scope: Scope = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not _KIND.fullmatch(self.kind):
            raise WrongUse(
                f"kind={self.kind!r}.", allowed="a word of at most 30 small letters and underscores"
            )
        require_storable("line", self.line, LONGEST_LINE)
        for name in ("question", "statement", "shared", "key"):
            require_storable(name, getattr(self, name), LONGEST_KEY)
        if not (self.question and self.analyst and self.purpose):
            raise WrongUse("A request without a question, a purpose or an analyst.")
        scope = Scope(
            self.dataset, self.purpose, self.analyst
        )  # refuses names that cannot be stored
        object.__setattr__(self, "scope", scope)

    @property
    def named(self) -> tuple[Keys, ...]:
        """The cache keys of the question, in the present format first, then in earlier ones."""
        return Keys(self.question, self.statement, self.shared), *self.earlier


@dataclass(frozen=True, slots=True)
class Ready:
    """A request whose cost is computed, ready to be charged to its account.

    ``account`` and ``dataset`` are account ids, ``relations`` the neighbour relations of the event,
    ``form`` its JSON, ``hashes`` the hashes under which its idempotency key may be bound.
    """

    request: Request
    account: str
    dataset: str
    cost: Charge
    relations: frozenset[str]
    form: dict[str, Json]
    hashes: tuple[str, ...]

    @classmethod
    def of(cls, request: Request, orders: Collection[Fraction] = ()) -> "Ready":
        """Returns a request with its cost; ``orders`` are the Renyi orders of the accounts of its
        path.

        An answer whose cost depends on these orders is not shared.

        Raises:
            InvalidNumber: the event costs nothing, which is true of no noise.
        """
        cost, relations, event = _priced(request.event, frozenset(orders))
        if cost == NOTHING:
            raise InvalidNumber("A charge of nothing.", allowed="an event with a cost above 0")
        if cost.orders is not None:
            request = replace(request, shared="")
        lineage = request.scope.lineage
        form: dict[str, Json] = {
            "account": lineage[-1],
            "question": request.question,
            "statement": request.statement,
            "shared": request.shared,
            "cost": charge_to_json(cost),
            "event": event,
        }
        form |= {"kind": request.kind} if request.kind != SQL else {}
        form |= {"line": request.line} if request.line else {}
        hashes = tuple(_asked(lineage[-1], keys) for keys in request.named) if request.key else ()
        return cls(request, lineage[-1], lineage[0], cost, relations, form, hashes)

    @property
    def hash(self) -> str:
        """The hash of the request to which its idempotency key is bound; "" without a key."""
        return self.hashes[0] if self.hashes else ""

    def row(self, charge_id: str, seq: int) -> ChargeRow:
        """Returns the stored row of the charge, which journal entry ``seq`` reserves."""
        request, root = self.request, self.dataset
        return ChargeRow(
            *(
                charge_id,
                root,
                seq,
                root,
                self.account,
                request.analyst,
                RESERVED,
                request.question,
                request.statement,
            ),
            *(request.shared, charge_text(self.cost), "", "", 0),
        )

    def body(self, charge_id: str, **more: Json) -> dict[str, Json]:
        """Returns the body of the journal entry of the charge; ``more`` are further fields."""
        bound: dict[str, Json] = (
            {"key": self.request.key, "request": self.hash} if self.request.key else {}
        )
        return {**self.form, **bound, **more, "charge": charge_id}


def _asked(account: str, keys: Keys) -> str:
    """Returns the hash of a question and its account, to which an idempotency key is bound.

    The cost is left out of it.
    """
    form: dict[str, Json] = {
        "account": account,
        "question": keys.question,
        "statement": keys.statement,
    }
    return hashlib.sha256(canonical_json(form).encode()).hexdigest()


# cached, since an analyst repeats few prices
@lru_cache(maxsize=1024)
def _priced(event: Event, orders: frozenset[Fraction]) -> tuple[Charge, frozenset[str], Json]:
    """The cost of an event, the neighbour relations for which it is proved, and its stored form."""
    relations = frozenset(relation.value for relation in relations_of(event))
    return price(event, orders), relations, event_to_json(event)
