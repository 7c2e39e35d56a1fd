# SPDX-License-Identifier: Apache-2.0
"""Rules for the names of new accounts, so that nobody evades a limit by another spelling.

A name is in NFKC (hence in NFC), without leading, trailing or double spaces, and highly restrictive
by UTS 39: its characters are allowed in identifiers or printable ASCII, and are of one script, or
of Latin with one of the writing systems of East Asia. Names are compared by case folding: a second
account whose name differs only in case is refused. Confusable names within one script ("rn" and
"m") remain; a closed list of names prevents those.

A stored account keeps its name, whatever it is.
"""

import unicodedata
from functools import lru_cache

from sfumato.errors import WrongUse
from sfumato.ledger.account_path import Scope
from sfumato.ledger.scripts import scripts_of
from sfumato.ledger.store.base import Rows

# The writing systems that use several scripts, for a name and together with Latin (UTS 39, 5.2).
_TOGETHER = (
    frozenset({"Latn", "Hani", "Hira", "Kana"}),
    frozenset({"Latn", "Hani", "Bopo"}),
    frozenset({"Latn", "Hani", "Hang"}),
)
_OF_ALL = frozenset({"Zyyy", "Zinh"})  # common and inherited


def require_new(rows: Rows, account_id: str) -> None:
    """Refuses to create an account whose name could be confused with another account's.

    The dataset's account must be locked.

    Guarantees:
        a name of mixed scripts opens no account
        a name that differs in case only opens no account

    Raises:
        WrongUse: the name is not well formed, or differs from that of an account only in case.
    """
    require_well_formed(Scope.of(account_id).parts[-1])
    twin = next(
        (twin_id for twin_id in rows.twins(folded(account_id)) if twin_id != account_id), None
    )
    if twin is not None:
        raise WrongUse(
            f"The account {account_id!r} differs from {twin!r} in its spelling only.",
            allowed=repr(twin),
            remedy="Write the name as the ledger has it.",
        )


def require_well_formed(name: str) -> None:
    """Refuses an account name with characters that could be confused with others.

    Raises:
        WrongUse: the name breaks a rule, which the error states.
    """
    if name != " ".join(name.split()):
        raise WrongUse(
            f"The name {name!r} has spaces around it, or two in a row.",
            allowed=repr(" ".join(name.split())),
        )
    if name != unicodedata.normalize("NFKC", name):
        raise WrongUse(
            f"The name {name!r} ({name!a}) is not in Unicode's form NFKC.",
            allowed=ascii(unicodedata.normalize("NFKC", name)),
        )
    if not is_highly_restrictive(name):
        raise WrongUse(
            f"The name {name!r} ({name!a}) mixes scripts, or has a character that no name may "
            "have.",
            allowed="letters, marks and digits of one script, or of Latin with Chinese, Japanese "
            "or Korean; "
            "printable ASCII",
            remedy="Letters of two scripts look alike: write the name in one.",
        )


@lru_cache(maxsize=4096)
def is_highly_restrictive(name: str) -> bool:
    """Whether a name is "highly restrictive" by UTS 39, printable ASCII included.

    >>> [is_highly_restrictive(each) for each in ("ann", "\\u738b ann", "\\u0430nn")]
    [True, True, False]
    """
    scripts_by_character = [
        scripts_of(character)
        for character in name
        if not " " <= character <= "~" or character.isalpha()
    ]
    if not all(scripts_by_character):
        return False
    own = [scripts for scripts in scripts_by_character if not scripts & _OF_ALL]
    if not own or frozenset.intersection(*own):
        return True
    return any(_all_in(system, own) for system in _TOGETHER)


def _all_in(system: frozenset[str], own: list[frozenset[str]]) -> bool:
    """Whether each character has a script of a writing system."""
    return all(scripts & system for scripts in own)


@lru_cache(maxsize=65536)
def folded(account_id: str) -> str:
    """Returns an account id with its case, Unicode form and spaces normalised, for comparison.

    >>> folded("D/Research/ Ann")
    'd/research/ann'
    """
    return "/".join(_folded(part) for part in account_id.split("/"))


def _folded(name: str) -> str:
    if name.isascii():
        return " ".join(name.lower().split())
    folds = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    return " ".join(folds.casefold().split())
