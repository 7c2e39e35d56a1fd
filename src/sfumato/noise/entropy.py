# SPDX-License-Identifier: Apache-2.0
"""Random bits from the operating system, and from nowhere else.

Short requests are fresh ``os.urandom`` calls. Long ones are AES-256-CTR under a key from
``os.urandom``, a new key each MiB; the stream belongs to one thread and is dropped at fork,
so that no bit is ever drawn twice. There is no seed: only ``sfumato.testing`` has a source
that can be replayed, and nothing shipped may import it. Proof: entropy.proof.md.
"""

import os
import threading
from typing import Protocol, TypeAlias

import numpy as np
from cryptography.hazmat.primitives.ciphers import AEADEncryptionContext, Cipher, CipherContext
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CTR
from numpy.typing import NDArray

Bytes: TypeAlias = NDArray[np.uint8]
Words: TypeAlias = NDArray[np.uint64]

# Below this a system call is as fast as the cipher, and leaves no state at all.
_SHORT = 512
_REKEY = 1 << 20
_ZEROS = memoryview(bytes(1 << 18))


class Entropy(Protocol):
    """A source of independent fair bits."""

    def bits(self, count: int) -> int:
        """``count`` independent fair bits as an integer in [0, 2^count)."""
        ...

    def fill(self, buffer: Bytes) -> None:
        """Overwrites a contiguous buffer with independent fair bits."""
        ...


class _Stream(threading.local):
    """The cipher of one thread: its context, the bytes left under its key, its process."""

    def __init__(self) -> None:
        self.cipher: CipherContext | AEADEncryptionContext | None = None
        self.left = 0
        self.process = 0

    def take(self, target: memoryview) -> int:
        """Overwrites a first part of ``target`` with key stream and says how much."""
        if self.cipher is None or self.left <= 0 or self.process != os.getpid():
            secret = os.urandom(48)
            self.cipher = Cipher(AES(secret[:32]), CTR(secret[32:])).encryptor()
            self.left, self.process = _REKEY, os.getpid()
        size = min(len(target), self.left, len(_ZEROS))
        # first counted, then drawn: what draws in between, a signal's handler say, finds less left
        self.left -= size
        self.cipher.update_into(_ZEROS[:size], target[:size])
        return size


class SystemEntropy:
    """The operating system's CSPRNG, stretched by AES-256-CTR where much is asked for.

    Guarantees:
        long draws are the key stream of aes under keys of the system
        a key serves one mebibyte
        a fork repeats no bit
        threads share no stream
    """

    __slots__ = ("_stream",)

    def __init__(self) -> None:
        self._stream = _Stream()

    def bits(self, count: int) -> int:
        size = (count + 7) // 8
        return int.from_bytes(os.urandom(size), "little") >> (8 * size - count)

    def fill(self, buffer: Bytes) -> None:
        # of any other buffer reshape would be a copy, and the caller's bytes would stay as they are
        if not buffer.flags.c_contiguous:
            raise ValueError("Entropy fills contiguous buffers only.")
        flat = buffer.reshape(-1)
        if flat.size <= _SHORT:
            flat[:] = np.frombuffer(os.urandom(flat.size), np.uint8)
            return
        target, done = flat.data, 0
        while done < flat.size:
            done += self._stream.take(target[done:])

    def drop(self) -> None:
        """Forgets this process's streams; what follows is under a new key."""
        self._stream = _Stream()


_SYSTEM = SystemEntropy()
SYSTEM: Entropy = _SYSTEM
# The check of the process in ``take`` is enough; this also wipes the parent's key from the child.
os.register_at_fork(after_in_child=_SYSTEM.drop)


def words(count: int, entropy: Entropy) -> Words:
    """``count`` independent uniform 64-bit words.

    >>> words(3, SYSTEM).dtype, len(words(3, SYSTEM))
    (dtype('uint64'), 3)
    """
    drawn = np.empty(count, "<u8")
    entropy.fill(drawn.view(np.uint8))
    return drawn.astype(np.uint64, copy=False)


def below(bound: int, entropy: Entropy) -> int:
    """A uniform integer in [0, bound), bound >= 1, by rejection: exactly uniform.

    >>> below(1, SYSTEM)
    0
    """
    count = (bound - 1).bit_length()
    while True:
        candidate = entropy.bits(count)
        if candidate < bound:
            return candidate


def token(entropy: Entropy = SYSTEM) -> str:
    """128 random bits as hexadecimal: identifiers and sampling keys, never noise."""
    return f"{entropy.bits(128):032x}"
