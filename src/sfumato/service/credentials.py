# SPDX-License-Identifier: Apache-2.0
"""Secrets: tokens as HMACs under a key file, passwords as Argon2id, and what slows guessing.

A token has 256 random bits, so one fast hash suffices; a password is slow to try, and only two are
computed at once.
"""

import hashlib
import hmac
import os
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from cryptography.exceptions import InvalidKey
from cryptography.hazmat.primitives.kdf.argon2 import Argon2id

from sfumato.errors import WrongUse
from sfumato.service.refusals import StateFailed, TooMany

TOKEN, INVITATION = "sfu_", "sfi_"
SHORTEST_PASSWORD, LONGEST_PASSWORD = 10, 1024
# OWASP's choice for Argon2id: 19 MiB, two passes, one lane
_ITERATIONS, _LANES, _MEMORY = 2, 1, 19 * 1024
_HASHERS = ThreadPoolExecutor(2, "password")
# a password that nobody has: an unknown name costs the time of a known one; written down, since to
# compute it would make every start 0.1 s longer
_NOBODY = (
    "$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA"
    "$CCv1k+OgTOY2o6b9oYXWUQjthgkklr8CN2O7KhjhHyo"
)


def new_secret(prefix: str) -> str:
    """Returns a new token or invitation: 256 random bits as text, after its prefix.

    >>> new_secret(TOKEN)[:4], len(new_secret(TOKEN))
    ('sfu_', 47)
    """
    return prefix + secrets.token_urlsafe(32)


def new_id() -> str:
    """Returns a new random id of 96 bits as hexadecimal text: unguessable, but not secret."""
    return secrets.token_hex(12)


class Digests:
    """Computes the digests of tokens: HMAC-SHA256 under a key in a file, created on first use.

    Whoever reads the state alone can neither use a token nor check a guess.

    Raises:
        StateFailed: the key file cannot be read or made, or has no key.
    """

    def __init__(self, path: Path) -> None:
        try:
            if not path.exists():
                descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
                with os.fdopen(descriptor, "wb") as file:
                    file.write(secrets.token_bytes(32))
                    file.flush()
                    os.fsync(file.fileno())
            self._key = path.read_bytes()
        except OSError as error:
            raise StateFailed(
                f"The key of the tokens cannot be used ({type(error).__name__})."
            ) from None
        if len(self._key) != 32:
            raise StateFailed("The key of the tokens has not 32 bytes.")

    def of(self, secret: str) -> str:
        """Returns the HMAC of a token or invitation in hexadecimal, as the service stores it."""
        return hmac.new(self._key, secret.encode(), hashlib.sha256).hexdigest()


def require_password(password: object) -> str:
    """Refuses a password that is too short or too long; returns it.

    Raises:
        WrongUse: it is; the text never quotes it.
    """
    allowed = f"{SHORTEST_PASSWORD} to {LONGEST_PASSWORD} characters"
    if not isinstance(password, str):
        raise WrongUse("A password that is no text.", allowed=allowed)
    if not SHORTEST_PASSWORD <= len(password) <= LONGEST_PASSWORD:
        raise WrongUse("A password of another length.", allowed=allowed)
    return password


def hash_password(password: str) -> str:
    """Returns the string that is stored for a password: Argon2id with its salt and parameters."""
    kdf = Argon2id(
        salt=os.urandom(16), length=32, iterations=_ITERATIONS, lanes=_LANES, memory_cost=_MEMORY
    )
    return _HASHERS.submit(kdf.derive_phc_encoded, _bytes_of(password)).result()


def is_password(password: str, stored: str) -> bool:
    """Whether a password matches its stored hash; "" is no hash: false, after the same time."""
    try:
        _HASHERS.submit(
            Argon2id.verify_phc_encoded, _bytes_of(password), stored or _NOBODY
        ).result()
    except InvalidKey:
        return False
    return bool(stored)


def _bytes_of(password: str) -> bytes:
    """The bytes of a password, also of one that JSON wrote with half of a surrogate pair."""
    return password.encode("utf-8", "surrogatepass")


class Slowdown:
    """A limit on sign-in attempts: repeated failures of a name or address double its waiting time.

    The first three failures are free; the waiting time is at most a minute.

    Remembers the newest 10,000 of them, so that a flood keeps no memory.

    >>> slow = Slowdown(lambda: 0.0)
    >>> for _ in range(4):
    ...     slow.failed(["name ann"])
    >>> slow.require(["name ann"])
    Traceback (most recent call last):
    ...
    sfumato.service.refusals.TooMany: Too many failed sign-ins.
    What to do: Come again in 2 seconds.
    """

    FREE, LONGEST, REMEMBERED = 3, 60, 10_000

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._failures: OrderedDict[str, tuple[int, float]] = OrderedDict()

    def require(self, keys: Sequence[str]) -> None:
        """Raises TooMany while a key (a name or an address) has to wait after failed sign-ins."""
        with self._lock:
            now = self._clock()
            wait = max((self._failures.get(key, (0, now))[1] - now for key in keys), default=0)
        if wait > 0:
            raise TooMany("Too many failed sign-ins.", int(wait) + (wait > int(wait)))

    def failed(self, keys: Sequence[str]) -> None:
        """Counts a failed sign-in for each key (a name or an address)."""
        with self._lock:
            for key in keys:
                count = self._failures.pop(key, (0, 0.0))[0] + 1
                pause = min(2.0 ** max(count - self.FREE, 0), self.LONGEST)
                until = self._clock() + (pause if count > self.FREE else 0)
                self._failures[key] = count, until
            while len(self._failures) > self.REMEMBERED:
                self._failures.popitem(last=False)

    def succeeded(self, keys: Sequence[str]) -> None:
        """Forgets the failed sign-ins of each key (a name or an address)."""
        with self._lock:
            for key in keys:
                self._failures.pop(key, None)
