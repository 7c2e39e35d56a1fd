# SPDX-License-Identifier: Apache-2.0
"""Account paths: a dataset, the purposes below it, and the analysts below each purpose.

Every account of the ledger is named by such a path (``Scope``). A charge is debited from each
account on its path (``account_transaction``).
"""

from dataclasses import dataclass
from functools import lru_cache

from sfumato.errors import WrongUse, shown

# The purpose of a question that names none.
UNSTATED = "unstated"

# In bytes of UTF-8. An index row of PostgreSQL has room for 2,704: for three names, each byte of
# which may be quoted to three, and a key.
LONGEST_NAME = 200
LONGEST_KEY = 255
# More than the 10^5 accounts of a large ledger: with a smaller cache, iterating over all of them
# would miss every time.
_MOST_KEPT = 1 << 17

_LEVELS = ("dataset", "purpose", "analyst")


@dataclass(frozen=True, slots=True)
class Scope:
    """The path of one account: a dataset, then a purpose, then an analyst.

    A path to the dataset's account has the dataset alone; one to a purpose's has no analyst.

    Guarantees:
        two scopes never share an id
        a path leads from the dataset to the account

    Raises:
        WrongUse: an empty name, one of more than 200 bytes in UTF-8, an analyst without a purpose,
            a control character.

    >>> Scope("acs", "research", "ann").lineage
    ('acs', 'acs/research', 'acs/research/ann')
    """

    dataset: str
    purpose: str = ""
    analyst: str = ""

    def __post_init__(self) -> None:
        names = (self.dataset, self.purpose, self.analyst)
        for level, name in zip(_LEVELS, names, strict=True):
            require_storable(level, name, LONGEST_NAME)
        if not self.dataset or (self.analyst and not self.purpose):
            raise WrongUse(
                "An account needs the names above it.",
                allowed="a dataset; a dataset and a purpose; a dataset, a purpose and an analyst",
            )

    @classmethod
    def of(cls, account_id: str) -> "Scope":
        """Returns the path that an account id stands for, such as ``dataset/purpose/analyst``."""
        return cls(
            *(part.replace("%2F", "/").replace("%25", "%") for part in account_id.split("/"))
        )

    @property
    def parts(self) -> tuple[str, ...]:
        """The names in the path: the dataset, purpose and analyst, without those that are empty."""
        return tuple(name for name in (self.dataset, self.purpose, self.analyst) if name)

    @property
    def lineage(self) -> tuple[str, ...]:
        """The ids of this account and all accounts above it, from the dataset's account down."""
        return _lineage(self)

    @property
    def id(self) -> str:
        """The account's id in the ledger, such as ``dataset/purpose/analyst``."""
        return self.lineage[-1]

    @property
    def root(self) -> str:
        """The id of the dataset's account, which is also the name of its journal chain."""
        return self.lineage[0]

    @property
    def parent(self) -> str:
        """The id of the account above it (a purpose's or a dataset's); empty for a dataset's
        account.
        """
        return self.lineage[-2] if len(self.lineage) > 1 else ""


def require_storable(what: str, text: str, longest: int) -> None:
    """Refuses a string with control characters or more than ``longest`` bytes of UTF-8.

    Raises:
        WrongUse: no text, a control character, half of a surrogate pair, or too long.
    """
    if not isinstance(text, str) or not text.isprintable():
        raise WrongUse(f"{what}={shown(text)}.", allowed="a text of printable characters")
    length = len(text.encode())
    if length > longest:
        raise WrongUse(
            f"The {what} has {length} bytes.", allowed=f"at most {longest} bytes in UTF-8"
        )


@lru_cache(maxsize=_MOST_KEPT)
def _lineage(scope: Scope) -> tuple[str, ...]:
    quoted = [name.replace("%", "%25").replace("/", "%2F") for name in scope.parts]
    return tuple("/".join(quoted[: depth + 1]) for depth in range(len(quoted)))


scope_of = lru_cache(maxsize=_MOST_KEPT)(Scope.of)


@lru_cache(maxsize=_MOST_KEPT)
def lineage_of(account_id: str) -> tuple[str, ...]:
    """Returns the ids of an account and all accounts above it, from the dataset's account down;
    cached.

    >>> lineage_of("acs/research/ann")
    ('acs', 'acs/research', 'acs/research/ann')
    """
    return Scope.of(account_id).lineage
