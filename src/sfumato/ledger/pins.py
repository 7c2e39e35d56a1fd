# SPDX-License-Identifier: Apache-2.0
"""Pins the identity and the signing key of a ledger when it is first verified.

A head signed by an unknown key, or of another ledger, proves nothing. As ssh does with hosts, a
verifier trusts what it finds at first use and records it in a file on a machine that the editor of
the ledger cannot write to.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from sfumato.errors import WrongUse, shown
from sfumato.ledger.journal import canonical_json
from sfumato.ledger.remembered_head import state_folder
from sfumato.ledger.signed_heads import Head, write_durably
from sfumato.privacy.event import Json


@dataclass(frozen=True, slots=True)
class Pin:
    """A user's expectation about the ledger at an address: its identity and signing key.

    ``state`` is the digest of what the last verification stored (``Verified``); "" if nothing.

    Guarantees:
        a head of another ledger is refused
        a head of another key is refused

    Raises:
        WrongUse: a key that is no Ed25519 public key in hexadecimal.

    >>> Pin("a ledger", "00" * 32).key[:4]
    '0000'
    """

    ledger: str
    key: str
    state: str = ""

    def __post_init__(self) -> None:
        if (
            not isinstance(self.ledger, str)
            or not isinstance(self.key, str)
            or not _is_key(self.key)
        ):
            raise WrongUse(
                f"key={shown(self.key)}.",
                allowed="a public key as 'sfumato ledger head' shows it: 64 hexadecimal digits",
            )

    def differences(self, heads: Sequence[Head]) -> Iterator[str]:
        """Returns descriptions of the signed heads that do not match the pinned identity and
        key.
        """
        for head in heads:
            if head.identity != self.ledger:
                yield (
                    f"the head of {head.at} is of another ledger ({head.identity}; this is "
                    f"{self.ledger})"
                )
            if head.public_key != self.key.lower():
                yield (
                    f"the head of {head.at} is signed by {head.public_key}, not by the pinned key "
                    f"{self.key.lower()}"
                )


class Known:
    """A user's file of pinned ledgers, by address (trust on first use).

    A ledger that is verified at an address must match its pin.

    Raises:
        WrongUse: the file cannot be read or written.
    """

    def __init__(self, path: str | Path | None = None) -> None:
        self.path = Path(path) if path is not None else default_path()

    def find(self, place: str) -> Pin | None:
        """Returns the pin of an address; None if no ledger was verified there before."""
        form = self._read().get(place)
        try:
            return Pin(form["ledger"], form["key"], form.get("state", "")) if form else None
        except (KeyError, TypeError, AttributeError):
            raise self._unreadable() from None

    def keep(self, place: str, pin: Pin) -> None:
        """Stores the pin of the ledger at an address in the user's file."""
        pins: dict[str, Json] = {**self._read(), place: asdict(pin)}
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_durably(self.path, f"{canonical_json(pins)}\n".encode())
        except OSError as error:
            raise WrongUse(
                f"{shown(self.path)} cannot be written ({error.strerror}).",
                remedy="Name another file with --known; the ledger was verified, and nothing is "
                "pinned.",
            ) from None

    def _read(self) -> dict[str, dict[str, str]]:
        if not self.path.exists():
            return {}
        try:
            form = json.loads(self.path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            raise self._unreadable() from None
        if not isinstance(form, dict):
            raise self._unreadable()
        return form

    def _unreadable(self) -> WrongUse:
        return WrongUse(
            f"{shown(self.path)} does not hold the ledgers that were verified.",
            remedy="Take it away, or name another.",
        )


def default_path() -> Path:
    """Returns the path of a user's pins: in XDG_STATE_HOME, by default in ~/.local/state."""
    return state_folder() / "known_ledgers.json"


def _is_key(text: str) -> bool:
    try:
        return len(bytes.fromhex(text)) == 32 and len(text) == 64
    except ValueError:
        return False
