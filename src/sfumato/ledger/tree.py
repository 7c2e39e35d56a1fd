# SPDX-License-Identifier: Apache-2.0
"""The tree of accounts: a dataset, the purposes below it, the analysts below each."""

from dataclasses import dataclass
from functools import lru_cache

from sfumato.errors import WrongUse

# The purpose of a question that names none.
UNSTATED = "unstated"

_LEVELS = ("dataset", "purpose", "analyst")


@dataclass(frozen=True, slots=True)
class Scope:
    """An account by its names; the lower ones may be left out, from the right.

    Guarantees:
        two scopes never share an id
        a path leads from the dataset to the account

    Raises:
        WrongUse: an empty name, an analyst without a purpose, a control character.

    >>> Scope("acs", "research", "ann").lineage
    ('acs', 'acs/research', 'acs/research/ann')
    """

    dataset: str
    purpose: str = ""
    analyst: str = ""

    def __post_init__(self) -> None:
        names = (self.dataset, self.purpose, self.analyst)
        for level, name in zip(_LEVELS, names, strict=True):
            if not isinstance(name, str) or not name.isprintable():
                raise WrongUse(f"{level}={name!r}.", allowed="a name in printable characters")
        if not self.dataset or (self.analyst and not self.purpose):
            raise WrongUse(
                "An account needs the names above it.",
                allowed="a dataset; a dataset and a purpose; a dataset, a purpose and an analyst",
            )

    @classmethod
    def of(cls, account_id: str) -> "Scope":
        """The scope of an id."""
        return cls(*(part.replace("%2F", "/").replace("%25", "%") for part in account_id.split("/")))

    @property
    def parts(self) -> tuple[str, ...]:
        """The names that are given."""
        return tuple(name for name in (self.dataset, self.purpose, self.analyst) if name)

    @property
    def lineage(self) -> tuple[str, ...]:
        """The ids from the dataset down to this account."""
        quoted = [name.replace("%", "%25").replace("/", "%2F") for name in self.parts]
        return tuple("/".join(quoted[: depth + 1]) for depth in range(len(quoted)))

    @property
    def id(self) -> str:
        """The id under which the account is stored."""
        return self.lineage[-1]

    @property
    def root(self) -> str:
        """The id of the dataset's account, and the name of its chain."""
        return self.lineage[0]

    @property
    def parent(self) -> str:
        """The id above; empty for a dataset."""
        return self.lineage[-2] if len(self.lineage) > 1 else ""


scope_of = lru_cache(maxsize=65536)(Scope.of)


@lru_cache(maxsize=65536)
def lineage_of(account_id: str) -> tuple[str, ...]:
    """The ids from the dataset down to an account, which hardly ever are new ones.

    >>> lineage_of("acs/research/ann")
    ('acs', 'acs/research', 'acs/research/ann')
    """
    return Scope.of(account_id).lineage
