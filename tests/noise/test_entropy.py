# SPDX-License-Identifier: Apache-2.0
"""Bits come from the operating system, and from nowhere else; no bit is drawn twice."""

import ast
import hashlib
import math
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import ECB
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato
from sfumato.noise import SYSTEM, Entropy, entropy
from sfumato.noise.entropy import SystemEntropy, below, token, words
from sfumato.testing import Replay, assert_follows
from tests.noise.truth import every_path

SOURCE = Path(sfumato.__file__).parent
FORBIDDEN = re.compile(r"^(random|secrets|uuid|ssl|numpy\.random|scipy\.stats|cryptography)(\.|$)")
FORK = """
import os
from multiprocessing import Pipe
import numpy as np
from sfumato.noise import entropy
from sfumato.noise.entropy import SYSTEM, SystemEntropy

SIZE = 5000

class Buffered:
    def __init__(self):
        self.pool = SYSTEM.bits(8 * 8 * SIZE)
    def fill(self, buffer):
        buffer[:] = [self.pool >> (8 * index) & 255 for index in range(buffer.size)]
        self.pool >>= 8 * buffer.size

def drawn(source):
    buffer = np.zeros(SIZE, np.uint8)
    source.fill(buffer)
    return buffer.tobytes()

def streams(source, generations=2):
    # what this process drew before the fork, what two children and a grandchild drew, and what it drew after
    found = [drawn(source)]
    for _ in range(2):
        here, there = Pipe()
        child = os.fork()
        if child == 0:
            there.send([drawn(source)] if generations == 1 else streams(source, generations - 1))
            os._exit(0)
        found += here.recv()
        os.waitpid(child, 0)
    return [*found, drawn(source)]

def repeats(source):
    windows = [found[start:start + 16] for found in streams(source) for start in range(SIZE - 16)]
    return len(windows) - len(set(windows))

print("system", repeats(SYSTEM))
print("process", repeats(SystemEntropy()))
print("buffered", repeats(Buffered()))
entropy.os.getpid = lambda: 1
print("dropped", repeats(SYSTEM))
print("neither", repeats(SystemEntropy()))
"""


MEBIBYTE = 1 << 20
# NIST SP 800-38A (2001), F.5.5, CTR-AES256: key, first counter, and the four output blocks.
NIST_KEY = bytes.fromhex("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4")
NIST_COUNTER = bytes.fromhex("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff")
NIST_BLOCKS = bytes.fromhex(
    "0bdf7df1591716335e9a8b15c860c5025a6e699d536119065433863c8f657b94"
    "1bc12c9c01610d5d0d8bd6a3378eca622956e1c8693536b1bee99c73a31576b6"
)


class Known:
    """``os.urandom`` with known answers, each one another.

    Keeps what it was asked for, and by whom.
    """

    def __init__(self, first: bytes = b"") -> None:
        self._first = first
        self.answers: list[bytes] = []
        self.threads: list[int] = []

    def __call__(self, size: int) -> bytes:
        seed = f"{len(self.answers)}/{size}".encode()
        answer = (
            self._first
            if self._first and not self.answers
            else hashlib.shake_256(seed).digest(size)
        )
        assert len(answer) == size
        self.answers.append(answer)
        self.threads.append(threading.get_ident())
        return answer


def key_stream(secret: bytes, size: int) -> bytes:
    """AES-256 of the block's number, block by block: what counter mode is, without that mode."""
    key, start = secret[:32], int.from_bytes(secret[32:], "big")
    counters = b"".join(
        ((start + block) % 2**128).to_bytes(16, "big") for block in range((size + 15) // 16)
    )
    return Cipher(AES(key), ECB()).encryptor().update(counters)[:size]


def filled(source: Entropy, size: int) -> bytes:
    """The next ``size`` bytes of a source."""
    buffer = np.zeros(size, np.uint8)
    source.fill(buffer)
    return buffer.tobytes()


def modulo(bound: int, entropy: Entropy) -> int:
    """The classical slip: the lowest values come too often."""
    return entropy.bits((bound - 1).bit_length()) % bound


def is_uniform(sampler, bound: int) -> bool:
    """Whether every value below ``bound`` has the very same mass over all bit strings."""
    law, rest = every_path(lambda entropy: sampler(bound, entropy), 2**-14)
    return sorted(law) == list(range(bound)) and set(law.values()) == {(1 - rest) / bound}


@given(st.integers(0, 300))
@settings(deadline=None)
def test_system_bits_are_those_of_os_urandom(count: int) -> None:
    given_out: list[bytes] = []
    real = os.urandom

    def watched(size: int) -> bytes:
        given_out.append(real(size))
        return given_out[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "urandom", watched)
        value = SYSTEM.bits(count)
    (raw,) = given_out
    assert len(raw) == (count + 7) // 8
    assert value == int.from_bytes(raw, "little") >> (8 * len(raw) - count)
    assert 0 <= value < 2**count


@pytest.mark.parametrize("bound", [1, 2, 3, 5, 6, 7, 8, 11, 16])
def test_below_is_exactly_uniform(bound: int) -> None:
    assert is_uniform(below, bound)


@pytest.mark.parametrize("bound", [3, 5, 6, 7, 11])
def test_uniformity_notices_a_remainder_instead_of_a_rejection(bound: int) -> None:
    assert not is_uniform(modulo, bound)


def follows_six(draws: list[int]) -> None:
    """Fails unless the draws are uniform below six; sure to notice the remainder of eight."""
    assert_follows(
        draws, lambda x: (x + 1) / 6, notices=lambda x: [2 / 8, 4 / 8, 5 / 8, 6 / 8, 7 / 8, 1][x]
    )


@pytest.mark.parametrize("entropy", [SYSTEM, Replay(5)], ids=["system", "replay"])
def test_below_is_uniform_under_real_bits(entropy: Entropy) -> None:
    follows_six([below(6, entropy) for _ in range(3000)])
    with pytest.raises(AssertionError, match="from the stated law"):
        follows_six([modulo(6, entropy) for _ in range(3000)])


@given(st.integers(1, 10**60))
@settings(deadline=None)
def test_below_stays_below(bound: int) -> None:
    assert 0 <= below(bound, SYSTEM) < bound


@given(st.lists(st.integers(0, 4000), max_size=8), st.binary(min_size=48, max_size=48))
@settings(deadline=None)
def test_long_draws_are_the_key_stream_of_aes_under_keys_of_the_system(
    sizes: list[int], secret: bytes
) -> None:
    known, source = Known(secret), SystemEntropy()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "urandom", known)
        drawn = [filled(source, size) for size in [513, *sizes]]
    long = b"".join(each for each in drawn if len(each) > 512)
    assert long == key_stream(secret, len(long))
    # and what is short is the system's own, never the cipher's
    assert known.answers == [secret, *(each for each in drawn if len(each) <= 512)]


def test_the_key_stream_is_the_one_that_nist_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "urandom", Known(NIST_KEY + NIST_COUNTER))
    assert filled(SystemEntropy(), 1000)[:64] == NIST_BLOCKS
    assert key_stream(NIST_KEY + NIST_COUNTER, 64) == NIST_BLOCKS


def test_the_counter_goes_round(monkeypatch: pytest.MonkeyPatch) -> None:
    secret = NIST_KEY + (2**128 - 3).to_bytes(16, "big")
    monkeypatch.setattr(os, "urandom", Known(secret))
    assert filled(SystemEntropy(), 1000) == key_stream(secret, 1000)


def test_the_comparison_notices_a_stream_that_begins_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def again(stream: object, target: memoryview) -> int:
        size = min(len(target), 100)
        target[:size] = key_stream(NIST_KEY + NIST_COUNTER, size)
        return size

    monkeypatch.setattr(entropy._Stream, "take", again)
    assert filled(SystemEntropy(), 600) != key_stream(NIST_KEY + NIST_COUNTER, 600)


CUTS = [
    [MEBIBYTE],
    [MEBIBYTE + 1, 600],
    [MEBIBYTE - 1, 513, 2 * MEBIBYTE],
    [700] * 1500 + [MEBIBYTE + 7],
    [3 * MEBIBYTE + 5],
    [1 << 18, (1 << 18) + 1, 1 << 19],
]


def rekeys(sizes: list[int]) -> bool:
    """Whether draws of these sizes are one mebibyte of each key's stream after the other's."""
    with pytest.MonkeyPatch.context() as patch:
        known, source = Known(), SystemEntropy()
        patch.setattr(os, "urandom", known)
        drawn = b"".join(filled(source, size) for size in sizes)
    keys = (len(drawn) + MEBIBYTE - 1) // MEBIBYTE
    expected = b"".join(key_stream(secret, MEBIBYTE) for secret in known.answers)[: len(drawn)]
    return [len(each) for each in known.answers] == [48] * keys and drawn == expected


@pytest.mark.parametrize("sizes", CUTS, ids=["one", "split", "edge", "many", "three", "chunks"])
def test_a_key_serves_one_mebibyte(sizes: list[int]) -> None:
    assert rekeys(sizes)


@pytest.mark.parametrize("size", [MEBIBYTE // 2, MEBIBYTE - 1, MEBIBYTE + 1, 2 * MEBIBYTE])
def test_the_count_notices_a_key_that_serves_more_or_less(
    monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(entropy, "_REKEY", size)
    assert not rekeys([2 * MEBIBYTE + 5])


def test_a_dropped_stream_is_never_taken_up_again(monkeypatch: pytest.MonkeyPatch) -> None:
    known, source = Known(), SystemEntropy()
    monkeypatch.setattr(os, "urandom", known)
    first = filled(source, 1000)
    source.drop()
    second = filled(source, 1000)
    assert [first, second] == [key_stream(secret, 1000) for secret in known.answers]


@pytest.mark.parametrize("size", [0, 1, 511, 512])
def test_a_short_request_is_one_call_of_the_system_and_leaves_no_state(
    monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    known, source = Known(), SystemEntropy()
    monkeypatch.setattr(os, "urandom", known)
    assert [filled(source, size)] == known.answers
    assert source._stream.cipher is None
    filled(source, 513)
    assert [len(each) for each in known.answers] == [size, 48]


@pytest.mark.parametrize("size", [0, 1, 512, 513, 5000, (1 << 18) + 3])
def test_a_fill_writes_its_buffer_and_no_byte_beside_it(size: int) -> None:
    whole = np.full(size + 64, 7, np.uint8)
    # once more often than a byte of 7 could stay by chance
    touched = np.zeros(size, bool)
    for _ in range(12):
        SYSTEM.fill(whole[32 : 32 + size])
        touched |= whole[32 : 32 + size] != 7
    assert touched.all()
    assert (whole[:32] == 7).all() and (whole[32 + size :] == 7).all()


@pytest.mark.parametrize("shape", [(), (3, 0), (8, 9), (1000, 8)], ids=str)
def test_a_buffer_of_any_shape_is_filled(shape: tuple[int, ...]) -> None:
    wide, flat = np.zeros(shape, np.uint8), np.zeros(math.prod(shape), np.uint8)
    for buffer in (wide, flat):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, "urandom", Known())
            SystemEntropy().fill(buffer)
    assert wide.tobytes() == flat.tobytes()


def test_what_draws_in_the_middle_of_a_draw_takes_other_bytes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A signal's handler: it may run between any two lines of ours, also when a key is nearly used
    up.
    """
    known, source, inner = Known(), SystemEntropy(), []
    monkeypatch.setattr(os, "urandom", known)
    filled(source, MEBIBYTE - 1000)
    cipher, stream = source._stream.cipher, source._stream

    class Interrupted:
        def update_into(self, zeros: memoryview, target: memoryview) -> None:
            stream.cipher = cipher
            inner.append(filled(source, 600))
            cipher.update_into(zeros, target)

    stream.cipher = Interrupted()
    outer, later = filled(source, 900), filled(source, 2000)
    first, second = (key_stream(secret, MEBIBYTE) for secret in known.answers)
    assert inner == [first[-1000:-900] + second[:500]]
    assert (outer, later) == (first[-900:], second[500:2500])


def test_a_fork_repeats_no_bit() -> None:
    output = subprocess.run(
        [sys.executable, "-c", FORK], capture_output=True, text=True, check=True
    ).stdout
    repeated = {name: int(count) for name, count in (line.split() for line in output.splitlines())}
    assert repeated["system"] == repeated["process"] == repeated["dropped"] == 0
    # the same search finds a state that both sides keep, and a stream without either protection
    assert repeated["buffered"] > 0 and repeated["neither"] > 0


def streams_of_threads(count: int = 4) -> tuple[list[bytes], Known]:
    """What each of some threads draws, in turns, and the system's answers."""
    known, source, barrier = Known(), SystemEntropy(), threading.Barrier(count)
    drawn: dict[int, bytes] = {}

    def draw() -> None:
        for _ in range(3):
            barrier.wait()
            drawn[threading.get_ident()] = drawn.get(threading.get_ident(), b"") + filled(
                source, 1000
            )
        barrier.wait()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "urandom", known)
        threads = [threading.Thread(target=draw) for _ in range(count)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    return [drawn[name] for name in known.threads], known


def test_threads_share_no_stream() -> None:
    drawn, known = streams_of_threads()
    assert len(set(known.threads)) == len(known.answers) == 4
    assert drawn == [key_stream(secret, 3000) for secret in known.answers]


def test_the_count_of_keys_notices_a_stream_that_threads_share(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = entropy._Stream()
    monkeypatch.setattr(entropy, "_Stream", lambda: Shared(own))
    _, known = streams_of_threads()
    assert len(known.answers) < 4


class Shared:
    """One stream for every thread: what a plain object would be."""

    def __init__(self, example: object) -> None:
        self.cipher, self.left, self.process = None, 0, 0
        self._take, self._lock = type(example).take, threading.Lock()

    def take(self, target: memoryview) -> int:
        with self._lock:
            return self._take(self, target)


@given(st.integers(0, 400), st.integers())
@settings(deadline=None)
def test_words_are_the_bytes_of_the_source_eight_by_eight(count: int, seed: int) -> None:
    drawn, raw = words(count, Replay(seed)), filled(Replay(seed), 8 * count)
    assert drawn.dtype == np.dtype(np.uint64) and drawn.shape == (count,)
    assert drawn.tolist() == [
        int.from_bytes(raw[8 * i : 8 * i + 8], "little") for i in range(count)
    ]


def test_tokens_are_128_bits_and_never_the_same() -> None:
    tokens = {token() for _ in range(1000)}
    assert len(tokens) == 1000
    assert all(re.fullmatch(r"[0-9a-f]{32}", each) for each in tokens)
    assert token(Replay(3)) == token(Replay(3))


def strays(source: str) -> list[str]:
    """What a file uses as randomness besides ``noise.entropy``."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if FORBIDDEN.match(alias.name)]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            found += [name for name in names if FORBIDDEN.match(name)]
        elif isinstance(node, ast.Attribute) and node.attr in (
            "urandom",
            "getrandom",
            "random",
            "default_rng",
        ):
            found.append(ast.unparse(node))
    return found


def test_nothing_shipped_takes_randomness_from_elsewhere() -> None:
    found = {
        path.relative_to(SOURCE).as_posix(): strays(path.read_text(encoding="utf-8"))
        for path in SOURCE.rglob("*.py")
        if path.relative_to(SOURCE).parts[0] != "testing"
    }
    # a key is no noise, to sign or to seal, nor are made-up people or a connection by TLS
    others = {
        "ledger/signed_heads.py",
        "ledger/rotation.py",
        "ledger/head_sinks.py",
        "engines/mysql.py",
        "telemetry/keys.py",
        "telemetry/sealing.py",
        "telemetry/signing.py",
        # keys of the demo, the first weights of its network, and made-up rows
        "examples/demo_telemetry.py",
        "examples/senders/send.py",
        "examples/demo_pictures.py",
        "examples/hospitals_data.py",
        "examples/made_up_census.py",
        "examples/demo_federation.py",
        "examples/demo_mining.py",
        "examples/demo_service.py",
        # a name for rows that have none
        "learning/row_versions.py",
        # keys of sites, masks that cancel, TLS
        "federated/answers.py",
        "federated/coordinator.py",
        "federated/declaration.py",
        "federated/encryption.py",
        "federated/messages.py",
        "federated/wire.py",
        "mechanisms/masks.py",
        # tokens and passwords; keys of calls
        "service/credentials.py",
        "web/client.py",
        # made-up rows and the coins of an attack, with a seed to repeat it
        "query/dummy.py",
        "audit/made_up.py",
        "audit/membership.py",
        "audit/published.py",
        # rows of graphs that are drawn from released numbers
        "graph/synthesis.py",
    }
    assert {name for name, uses in found.items() if uses} == {"noise/entropy.py", *others}
    ciphers = {
        name.removeprefix("cryptography.hazmat.primitives.ciphers.")
        for name in found["noise/entropy.py"]
    }
    assert ciphers == {
        "os.urandom",
        "AEADEncryptionContext",
        "Cipher",
        "CipherContext",
        "algorithms.AES",
        "modes.CTR",
    }
    assert len(found) > 40


@pytest.mark.parametrize(
    "line",
    [
        "import random",
        "from random import gauss",
        "import secrets",
        "import numpy.random as r",
        "from numpy import random",
        "from numpy.random import default_rng",
        "import numpy as np\nnp.random.normal()",
        "import os\nos.getrandom(4)",
        "from cryptography.hazmat.primitives.ciphers import Cipher",
        "def f():\n    import uuid",
    ],
)
def test_the_search_for_randomness_finds_each_way_to_it(line: str) -> None:
    assert strays(line)


def test_a_buffer_with_gaps_is_refused() -> None:
    buffer = np.zeros((4, 4), np.uint8)
    with pytest.raises(ValueError, match="contiguous"):
        SystemEntropy().fill(buffer[:, ::2])
    assert not buffer.any()
