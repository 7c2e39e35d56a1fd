# SPDX-License-Identifier: Apache-2.0
"""Random bits, from the operating system only.

A short request calls ``os.urandom``. A long one reads an AES-256-CTR stream under a key from
``os.urandom``, with a new key for every MiB. Each thread has its own stream, and a fork drops it,
so no bit is ever drawn twice. There is no seed: only ``sfumato.testing`` has a replayable source,
and shipped code may not import it. Proof: entropy.proof.md.
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

# Bytes. Up to this a system call is as fast as the cipher, and leaves no state in memory.
_SHORT = 512
_REKEY = 1 << 20
_ZEROS = memoryview(bytes(1 << 18))


class Entropy(Protocol):
    """The interface of a source of independent fair bits.

    Shipped code passes ``SYSTEM``. Tests pass a replayable ``sfumato.testing.Replay``.

    >>> 0 <= SYSTEM.bits(8) < 256
    True
    """

    def bits(self, count: int) -> int:
        """Returns ``count`` independent fair bits as an integer in [0, 2^count)."""
        ...

    def fill(self, buffer: Bytes) -> None:
        """Overwrites a contiguous buffer with independent fair bits."""
        ...


class _Stream(threading.local):
    """The key stream of one thread: the cipher, the bytes left under its key, the process id."""

    def __init__(self) -> None:
        self.cipher: CipherContext | AEADEncryptionContext | None = None
        self.left = 0
        self.process = 0

    def take(self, target: memoryview) -> int:
        """Overwrites the beginning of ``target`` with key stream; returns the number of bytes."""
        if self.cipher is None or self.left <= 0 or self.process != os.getpid():
            secret = os.urandom(48)
            self.cipher = Cipher(AES(secret[:32]), CTR(secret[32:])).encryptor()
            self.left = _REKEY
            self.process = os.getpid()
        size = min(len(target), self.left, len(_ZEROS))
        # count before drawing, so that a signal handler that draws in between sees fewer bytes left
        self.left -= size
        self.cipher.update_into(_ZEROS[:size], target[:size])
        return size


class SystemEntropy:
    """The operating system's random generator; long requests are stretched with AES-256-CTR.

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
        # reshape would copy any other buffer, and the caller's bytes would stay unchanged
        if not buffer.flags.c_contiguous:
            raise ValueError("Entropy fills contiguous buffers only.")
        flat = buffer.reshape(-1)
        if flat.size <= _SHORT:
            flat[:] = np.frombuffer(os.urandom(flat.size), np.uint8)
            return
        target = flat.data
        done = 0
        while done < flat.size:
            done += self._stream.take(target[done:])

    def drop(self) -> None:
        """Discards the streams of this process; later draws use a new key."""
        self._stream = _Stream()


_SYSTEM = SystemEntropy()
SYSTEM: Entropy = _SYSTEM
# The check of the process id in ``take`` suffices; this also removes the parent's key in the child.
os.register_at_fork(after_in_child=_SYSTEM.drop)


def words(count: int, entropy: Entropy) -> Words:
    """Returns ``count`` independent uniform 64-bit words.

    >>> words(3, SYSTEM).dtype, len(words(3, SYSTEM))
    (dtype('uint64'), 3)
    """
    drawn = np.empty(count, "<u8")
    entropy.fill(drawn.view(np.uint8))
    return drawn.astype(np.uint64, copy=False)


def below(bound: int, entropy: Entropy) -> int:
    """Returns an exactly uniform random integer in [0, bound), bound >= 1, by rejection.

    >>> below(1, SYSTEM)
    0
    """
    count = (bound - 1).bit_length()
    while True:
        candidate = entropy.bits(count)
        if candidate < bound:
            return candidate


def token(entropy: Entropy = SYSTEM) -> str:
    """Returns 128 random bits in hexadecimal, for identifiers and sampling keys, never for noise."""
    return f"{entropy.bits(128):032x}"
