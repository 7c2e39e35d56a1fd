# SPDX-License-Identifier: Apache-2.0
"""The client on a device: turns a true value into a report, at most as often as the task says.

Whether there is a report, when, and how long it is depends on the clock and the store, never on
the value. Proof: client.proof.md.
"""

import copy
import hashlib
import hmac
import struct
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from sfumato.errors import TaskRefused, WrongUse
from sfumato.exact.rational import Number, decimal_text, positive
from sfumato.exact.rounding import float_up
from sfumato.noise import SYSTEM, Entropy
from sfumato.noise.entropy import words as drawn_words
from sfumato.telemetry.keys import PublicKey
from sfumato.telemetry.oracles.rappor import RapporOracle
from sfumato.telemetry.report import Layout
from sfumato.telemetry.sealing import sealed
from sfumato.telemetry.signing import SignedTask, verified
from sfumato.telemetry.store import Store
from sfumato.telemetry.task import ReportTask

SECRET = 32
_ID = b"sfumato telemetry id 1"
_ANSWER = b"sfumato telemetry answer 1"
_STATE = struct.Struct(">BIIIII")
_STATE_VERSION = 1
# No epoch or period has this number.
_NONE = (1 << 32) - 1


class Client:
    """Reports the values of one device for one task; ``max_epsilon`` is of this task alone.

    ``secret`` is 32 random bytes that never leave the device, the same for all its tasks.
    ``trusted`` are the public keys of whoever may ask; ``published`` the list of the hashes (in
    hexadecimal) of all tasks that everybody gets; ``max_epsilon`` the most that the device may
    tell of this task in its whole life. To cap the sum over tasks, state what the others leave of
    it (``client.task.life_epsilon``). One store serves one task.

    A device that is new, or whose store was lost, is silent until the next epoch begins. So its
    clock must not be behind then. A clock before the moment at which the task was signed, or
    before ``installed`` (seconds since 1970, of the application on this device), is known to be
    wrong: then nothing is sent or written. Tasks of earlier versions do not say when they were
    signed (``client.signed_at`` is None): of them ``installed`` alone is compared.

    Guarantees:
        an epoch has one answer whatever the values are
        a period has at most the stated reports
        a lost store is silent until the next epoch
        a clock that is known to be wrong begins nothing
        a clock that goes back draws nothing again
        silence does not depend on the value
        every report of a task has the same size

    Raises:
        TaskRefused: the task is unsigned, not in the published list, expired, or too dear.
        WrongUse: a secret of another length.

    >>> from cryptography.hazmat.primitives.asymmetric import ec
    >>> from sfumato.telemetry.signing import signed_task
    >>> from sfumato.telemetry.store import MemoryStore
    >>> from sfumato.telemetry.task import report_task
    >>> key = ec.generate_private_key(ec.SECP256R1())
    >>> task = report_task("t", "?", ["yes", "no"], epsilon=1, start=1_000_000, periods=7)
    >>> today = [999_999]
    >>> signed = signed_task(task, key, signed_at=900_000)
    >>> client = Client(signed, bytes(32), MemoryStore(),
    ...                 trusted=[key.public_key()], published=[task.hash.hex()], max_epsilon=7,
    ...                 clock=lambda: today[0])
    >>> client.report("yes") is None
    True
    >>> today[0] = 1_000_000
    >>> len(client.report("yes")), client.report("no") is None
    (30, True)
    """

    def __init__(
        self,
        task: SignedTask | bytes,
        secret: bytes,
        store: Store,
        *,
        trusted: Sequence[PublicKey],
        published: Collection[str],
        max_epsilon: Number,
        clock: Callable[[], float] = time.time,
        installed: float = 0,
    ) -> None:
        self._secret = _whole(secret)
        signed = verified(task, trusted)
        self.task, self.signed_at = signed.task, signed.signed_at
        self._earliest = max(signed.signed_at or 0, installed)
        self._hash = self.task.hash
        self._layout = Layout.of(self.task)
        self._store = store
        self._clock = clock
        if self._hash.hex() not in published:
            raise TaskRefused(
                f"The task {self.task.id!r} is not in the published list: it may be made for one "
                "person.",
                allowed="tasks whose hash everybody can see",
            )
        if clock() >= self.task.expires:
            raise TaskRefused(f"The task {self.task.id!r} has expired.")
        self._require_affordable(max_epsilon)

    def _require_affordable(self, max_epsilon: Number) -> None:
        """Raises TaskRefused if the life of a device costs more than the application allows."""
        most = positive("max_epsilon", max_epsilon)
        life = self.task.life_epsilon
        if life > most:
            raise TaskRefused(
                f"The task {self.task.id!r} costs epsilon {float_up(life):.4g} in the life of a "
                "device.",
                allowed=f"max_epsilon={decimal_text(most)}",
            )

    def device(self, secret: bytes, store: Store) -> "Client":
        """Returns a client of the same task for another device, with its own secret and store; the
        task is not verified again.

        Raises:
            WrongUse: a secret of another length.
        """
        other = copy.copy(self)
        other._secret = _whole(secret)
        other._store = store
        return other

    def report(self, value: object, entropy: Entropy = SYSTEM) -> bytes | None:
        """Returns the report of the device's present value, or None if none is due.

        No report is due before the start and after the end of the task, after the reports of this
        period, while a new or lost store waits, and when the clock is behind.
        """
        now = self._clock()
        task = self.task
        period = task.period_at(now)
        if period >= task.periods or now >= task.expires:
            return None
        epoch = task.epoch_of(period)
        state = self._state()
        if state is None:
            # a clock that is behind would begin in an epoch that the device has answered in
            if now >= self._earliest:
                self._store.save(_State.waiting(epoch).to_bytes())
            return None
        used = state.used if period == state.period else 0
        late = state.period != _NONE and period < state.period
        if period < 0 or epoch < state.first or late or used >= task.reports:
            return None
        number = task.domain.number(value)
        if task.memory:
            kept = state.answer if state.epoch == epoch else self._permanent(number, epoch)
            after = _State(state.first, period, used + 1, epoch, kept)
            answer = self._blurred(kept, entropy)
        else:
            words = drawn_words(task.oracle.draws, entropy).tolist()
            answer = task.oracle.encode(number, words)
            after = _State(state.first, period, used + 1, state.epoch, state.answer)
        # before the report leaves: a crash after it must not draw again
        self._store.save(after.to_bytes())
        return sealed(task, self._layout.report(period, self._id(period, used), answer))

    def _state(self) -> "_State | None":
        """What the store knows; None if that is nothing, or is not whole."""
        kept = self._store.load()
        return None if kept is None else _State.from_bytes(kept, self.task)

    def _id(self, period: int, slot: int) -> bytes:
        """The id of a report: it shows a duplicate, and no other period of the same device."""
        return self._keyed(_ID, period, slot)[:16]

    def _permanent(self, number: int, epoch: int) -> bytes:
        """Returns the answer of an epoch: a keyed function of the task, the epoch and the value."""
        oracle = self.task.oracle
        # two numbers of 32 bits where one does not hold all values
        large = self.task.domain.size > 1 << 32
        parts = divmod(number, 1 << 32) if large else (number,)
        words: list[int] = []
        while len(words) < oracle.draws:
            block = self._keyed(_ANSWER, epoch, *parts, len(words) // 4)
            words += struct.unpack(">4Q", block)
        return oracle.encode(number, words[: oracle.draws])

    def _blurred(self, answer: bytes, entropy: Entropy) -> bytes:
        """What is sent of an answer: itself; of RAPPOR, its bits drawn again."""
        oracle = self.task.oracle
        if not isinstance(oracle, RapporOracle):
            return answer
        return oracle.blur(answer, drawn_words(oracle.blurs, entropy).tolist())

    def _keyed(self, label: bytes, *numbers: int) -> bytes:
        """HMAC-SHA256 under the secret, of a label, the task and some numbers."""
        text = label + self._hash + struct.pack(f">{len(numbers)}I", *numbers)
        return hmac.digest(self._secret, text, "sha256")

    def __repr__(self) -> str:
        return f"Client({self.task.id!r})"


def _whole(secret: bytes) -> bytes:
    """Returns a secret, if it is one (WrongUse for anything else; it is never quoted)."""
    if not isinstance(secret, bytes) or len(secret) != SECRET:
        raise WrongUse(
            "The secret of a device is not 32 bytes.",
            allowed="32 bytes of the operating system: secrets.token_bytes(32)",
        )
    return secret


@dataclass(frozen=True, slots=True)
class _State:
    """What a client remembers: from when it answers, what it has sent, and its answer.

    ``first`` is the first epoch that it may answer in; ``period`` the last one that it sent in,
    with ``used`` reports; ``epoch`` that of ``answer``.
    """

    first: int
    period: int = _NONE
    used: int = 0
    epoch: int = _NONE
    answer: bytes = b""

    @classmethod
    def waiting(cls, epoch: int) -> "_State":
        """The state of a device that answers from the epoch after this one on; the first is 0."""
        return cls(max(epoch + 1, 0))

    def to_bytes(self) -> bytes:
        """Returns the bytes of the store, with a checksum."""
        body = _STATE.pack(
            _STATE_VERSION, self.first, self.period, self.used, self.epoch, len(self.answer)
        )
        body += self.answer
        return body + hashlib.sha256(body).digest()

    @classmethod
    def from_bytes(cls, stored_bytes: bytes, task: ReportTask) -> "_State | None":
        """Reads ``to_bytes``; None if anything is wrong with it."""
        body, check = stored_bytes[:-32], stored_bytes[-32:]
        if len(body) < _STATE.size or hashlib.sha256(body).digest() != check:
            return None
        version, first, period, used, epoch, length = _STATE.unpack_from(body)
        answer = body[_STATE.size :]
        size = 0 if epoch == _NONE else task.oracle.size
        if version != _STATE_VERSION or not len(answer) == length == size:
            return None
        return cls(first, period, used, epoch, answer)
