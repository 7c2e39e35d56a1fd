# SPDX-License-Identifier: Apache-2.0
"""What a client in any language keeps: the bytes of the vectors, refusals, one report a call."""

import base64
import hashlib
import json
from collections.abc import Callable, Sequence

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256

from sfumato.errors import InvalidDeclaration, WrongUse
from sfumato.telemetry import Aggregator, Client, MemoryStore, Texts, Words, opened, oracles
from sfumato.telemetry.domain import domain_of
from sfumato.telemetry.signing import signed_task
from sfumato.telemetry.task import report_task
from tools import telemetry_conformance as conformance
from tools.telemetry_conformance import EARLIER, KEY, Form, opening
from tools.telemetry_vectors import SECRET, START

Ask = Callable[[Sequence[Form]], list[Form]]
EARLY = [{"seconds": START - 1, "value": "a"}]


def small(**changes):
    given = {"epsilon": 1, "start": START, "periods": 7, "memory": 7} | changes
    return report_task("t", "?", ["a", "b"], **given)


def signed_json(body, signature=None):
    """Any text, signed as a task."""
    if signature is None:
        der = KEY.sign(b"sfumato telemetry task 1\n" + body.encode(), ec.ECDSA(SHA256()))
        parts = [part.to_bytes(32, "big") for part in decode_dss_signature(der)]
        signature = b"".join(parts)
    return json.dumps({"signature": base64.b64encode(signature).decode(), "task": body})


def wrong_moments(signed):
    """A signed task that says that it was signed at another moment, or at none."""
    moments = [EARLIER + 1, None, "0", -1, 1.5, True, 2**41, [0]]
    return [json.dumps(signed | {"signed_at": moment}) for moment in moments]


def canonical(form):
    return json.dumps(form, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def opening_of(body):
    """What a client of any text, signed and published, is opened with."""
    published = [hashlib.sha256(body.encode()).hexdigest()]
    return opening(small(), signed=signed_json(body), published=published)


def asking(given, turns=EARLY):
    return {"ask": "reports", "open": given, "turns": turns}


def changed(*path, to):
    """The form of a task with one field changed, or left out if it becomes ``...``."""
    form = json.loads(small().to_bytes())
    place = form
    for name in path[:-1]:
        place = place[name]
    if to is ...:
        del place[path[-1]]
    else:
        place[path[-1]] = to
    return form


OTHER_POINTS = ["", "AAAA", "A" * 87 + "=", "B" + "A" * 86 + "=", None]
UNFIT = [
    *(changed("aggregator", to=point) for point in OTHER_POINTS),
    changed("format", to=2),
    changed("format", to="1"),
    changed("more", to=1),
    changed("periods", to=...),
    changed("periods", to=0),
    changed("periods", to=1.5),
    changed("period", to=59),
    changed("reports", to=2),
    changed("memory", to=-1),
    changed("min_batch", to=1),
    changed("id", to="A"),
    changed("id", to=""),
    changed("id", to=7),
    changed("question", to=""),
    changed("expires", to=START),
    changed("start", to=1 << 60),
    changed("domain", to=None),
    changed("domain", to=[]),
    changed("domain", "values", to=["a", "a"]),
    changed("domain", "values", to=["a", "e\u0301"]),
    changed("domain", "values", to=["a", 7]),
    changed("domain", "values", to=["a", ""]),
    changed("domain", "values", to=["a", "b", "c"]),
    changed("domain", "other", to="a"),
    changed("domain", "kind", to="texts"),
    changed("domain", to={"kind": "lattice", "lower": 2, "upper": 0, "step": "1"}),
    changed("domain", to={"kind": "lattice", "lower": 0, "upper": 2, "step": "0"}),
    changed("domain", to={"kind": "lattice", "lower": 0, "upper": 2, "step": "-1"}),
    changed("domain", to={"kind": "lattice", "lower": 0, "upper": 2, "step": 1}),
    changed("oracle", to=None),
    changed("oracle", "kind", to="constructor"),
    changed("oracle", "kind", to=["category"]),
    changed("domain", "kind", to=["listed"]),
    changed("domain", to={"kind": ["lattice"], "lower": 0, "upper": 2, "step": "1"}),
    changed("oracle", "kind", to="unary"),
    changed("oracle", "more", to="1"),
    changed("oracle", "truth", to=str(1 << 63)),
    changed("oracle", "truth", to=1 << 50),
    changed("oracle", "truth", to=...),
    changed("oracle", "other_weight", to="0"),
    changed("oracle", "values", to=1),
]
# weights that do not give the stated law, by the oracle
_PROJECTIVE = {"dimension": 2, "far": "1", "kind": "projective", "near": "2", "values": 3}
UNFIT += [
    changed("oracle", to=oracle)
    for oracle in (
        {"kind": "bit", "truth": str(1 << 63), "values": 3},
        {"kind": "unary", "added": "7", "kept": "7", "values": 3},
        {"kind": "unary", "added": "0", "kept": "7", "values": 3},
        {"kind": "unary", "added": "-1", "kept": "7", "values": 3},
        {"kind": "unary", "added": "07", "kept": "8", "values": 3},
        {"kind": "unary", "added": "7", "kept": str(1 << 64), "values": 3},
        {"buckets": 1, "kind": "hashed", "other_weight": "1", "truth": "2", "values": 3},
        _PROJECTIVE | {"prime": 4, "near": str((1 << 64) - 4)},
        _PROJECTIVE | {"prime": 2, "near": str((1 << 64) - 3)},
        _PROJECTIVE | {"prime": 30_000_001},
        {"branching": 2, "kind": "levels", "parts": [], "values": 3},
        {"kind": "attributes", "parts": []},
    )
]
_BIT = {"kind": "bit", "truth": str(3 << 62), "values": 4}
_SKETCH = {"kind": "sketch", "rows": 3, "part": _BIT}
_WORDS = {"kind": "words", "letters": "ab", "length": 3}
_PREFIXES = {"kind": "prefixes", "symbols": 3, "length": 3, "step": 2, "parts": [_SKETCH] * 3}
_FRAGMENTS = _PREFIXES | {"kind": "fragments", "parts": [_SKETCH] * 2}


def of_texts(domain, oracle):
    """The form of a task of texts that nobody listed."""
    return changed("domain", to=domain) | {"oracle": oracle}


TEXTS = {"kind": "texts"}
FIT = [
    of_texts(TEXTS, _SKETCH),
    of_texts(_WORDS, _PREFIXES),
    of_texts(_WORDS, _FRAGMENTS),
]
UNFIT += [
    of_texts(TEXTS, _SKETCH | change)
    for change in (
        {"rows": 0},
        {"rows": 65_537},
        {"values": 4},
        {"part": None},
        {"part": _SKETCH},
        {"part": _BIT | {"values": 3}},
        {"part": _BIT | {"values": 1 << 17}},
        {"part": _BIT | {"values": 1 << 16}, "rows": 1 << 12},
        {"part": _BIT | {"truth": "7"}},
        {"part": {"kind": "hashed", "buckets": 2, "truth": "2", "other_weight": "1", "values": 4}},
    )
]
UNFIT += [
    of_texts(_WORDS, _PREFIXES | change)
    for change in (
        {"symbols": 4},
        {"length": 4},
        {"step": 0},
        {"step": 4},
        {"parts": [_SKETCH] * 2},
        {"parts": [_SKETCH] * 2 + [_BIT]},
        {"parts": [_SKETCH] * 2 + [_SKETCH | {"rows": 0}]},
    )
]
UNFIT += [
    of_texts(_WORDS, _FRAGMENTS | change)
    for change in (
        {"symbols": 4},
        {"length": 4},
        {"step": 0},
        {"step": 4},
        {"step": "2"},
        {"parts": [_SKETCH]},
        {"parts": [_SKETCH] * 3},
        {"parts": [_SKETCH, _BIT]},
        {"parts": [_SKETCH, _SKETCH | {"rows": 0}]},
        {"part": _SKETCH},
    )
]
UNFIT += [
    of_texts(_WORDS | change, _PREFIXES | {"symbols": symbols})
    for change, symbols in (
        ({"letters": "aa"}, 3),
        ({"letters": "aa"}, 2),
        ({"letters": "e\u0301"}, 3),
        ({"letters": ""}, 1),
        ({"letters": ["a", "b"]}, 3),
        ({"length": 0}, 3),
        ({"length": "3"}, 3),
        ({"length": 41}, 3),
        ({"other": "c"}, 3),
    )
]
UNFIT += [
    of_texts(TEXTS, _PREFIXES),
    of_texts(TEXTS, _FRAGMENTS),
    of_texts(_WORDS, _SKETCH),
    of_texts({"kind": "listed", "other": "o", "values": ["a"]}, _SKETCH),
    of_texts(_WORDS, {"kind": "bit", "truth": str(3 << 62), "values": 27}),
    # 256 symbols squared are more than the continuations that are tried
    of_texts(
        {"kind": "words", "letters": "".join(map(chr, range(0x4E00, 0x4EFF))), "length": 2},
        {"kind": "prefixes", "symbols": 256, "length": 2, "step": 2, "parts": [_SKETCH] * 2},
    ),
    # 91 symbols squared are more fragments than are tried
    of_texts(
        {"kind": "words", "letters": "".join(map(chr, range(0x4E00, 0x4E5A))), "length": 2},
        {"kind": "fragments", "symbols": 91, "length": 2, "step": 2, "parts": [_SKETCH] * 2},
    ),
]
BROKEN = [
    "",
    "{",
    "[]",
    "7",
    "null",
    '"task"',
    '{"signature":"AA==","task":""}',
    '{"signature":"","task":"{}"}',
    '{"signature":7,"task":7}',
    "[" * 100_000,
    '{"signature":"AA==","task":"{}","more":1}',
]
# the same bytes in UTF-8 as the question "?" where a lone surrogate is written as a question mark
LONE = "\\ud800"
HELD = [1 << 53, -(1 << 53), 1 << 70, -(1 << 70), True, 0.5, [], {}, None, "\ud800", "x\udfff", "?"]
HELD += ["?0", "?0\0", "0" * 27, "0" * 28, "0-"]


def answers_unlisted(ask: Ask) -> bool:
    """Whether a client takes a task that is in no list, as one made for one person would be."""
    (answer,) = ask([asking(opening(small(), published=["00" * 32]))])
    return "error" not in answer


def is_silent_outside(ask: Ask) -> bool:
    """Whether a device sends nothing where the value is not in the domain."""
    turns = [{"seconds": START + second, "value": "not listed"} for second in (-1, 0)]
    (answer,) = ask([asking(opening(small()), turns)])
    return bool(answer.get("found", [None])[-1] is None)


class ClientContract:
    """A subclass has the fixtures ``ask`` and ``program``."""

    def test_the_vectors_are_what_it_gives(self, program: list[str]) -> None:
        assert conformance.run(program).wrong == ()

    def test_tasks_that_a_device_must_not_answer(self, ask: Ask) -> None:
        task = small()
        other = ec.generate_private_key(ec.SECP256R1())
        signed = json.loads(signed_task(task, KEY, signed_at=EARLIER).to_bytes())
        unfit = json.loads(signed["task"])
        unfit["oracle"]["truth"] = str(int(unfit["oracle"]["truth"]) + 1)
        late = [{"seconds": task.expires, "value": "a"}]
        foreign = signed_task(task, other, signed_at=EARLIER).to_bytes().decode()
        body, lone = signed["task"], json.dumps(signed).replace('\\"?\\"', f'\\"{LONE}\\"')
        assert LONE in lone
        cases = [
            (opening(task), EARLY, None),
            (opening(task, maxEpsilon="1"), EARLY, None),
            (opening(task, maxEpsilon="0.999999"), EARLY, "dearer"),
            (opening(small(memory=1), maxEpsilon="6.999999"), EARLY, "dearer"),
            (opening(small(memory=1), maxEpsilon=7), EARLY, None),
            (opening(task, published=["00" * 32]), EARLY, "published list"),
            (opening(task, published=[]), EARLY, "published list"),
            (opening(task, trusted=[]), EARLY, "trusted key"),
            (opening(task), late, "expired"),
            (opening(task, signed=json.dumps(signed).replace("?", "!")), EARLY, "trusted key"),
            (opening(task, signed=foreign), EARLY, "trusted key"),
            (opening(task, signed=signed_json(body, bytes(64))), EARLY, "trusted key"),
            (opening(task, signed=signed_json(body, bytes(63))), EARLY, "trusted key"),
            (opening(task, signed=json.dumps({"task": body})), EARLY, "no signed task"),
            (opening(task, signed=lone), EARLY, ""),
            *((opening(task, signed=bad), EARLY, "") for bad in wrong_moments(signed)),
            (opening(task, signed=signed_json(canonical(unfit))), EARLY, "do not fit"),
            (opening(task, secret="00" * 31), EARLY, "32 bytes"),
            (opening(task, maxEpsilon="0"), EARLY, ""),
            (opening(task, maxEpsilon="-1"), EARLY, ""),
            (opening(task, maxEpsilon="much"), EARLY, ""),
        ]
        unknown = opening(task)
        del unknown["published"]
        cases.append((unknown, EARLY, ""))
        assert not answers_unlisted(ask) and not is_silent_outside(ask)
        answers = ask([asking(given, turns) for given, turns, _ in cases])
        for (_, _, reason), answer in zip(cases, answers, strict=True):
            if reason is None:
                assert answer == {"found": [None]}
            else:
                assert reason in answer["error"]

    def test_what_python_refuses_it_refuses(self, ask: Ask) -> None:
        bodies = [canonical(form) for form in UNFIT]
        bodies.append(small().to_bytes().decode() + " ")
        for body in bodies:
            with pytest.raises(InvalidDeclaration):
                python_client(body)
        fit = [canonical(form) for form in FIT]
        assert [python_client(body).report("a") for body in fit] == [None] * 3
        taken = ask([asking(opening_of(body)) for body in fit])
        assert taken == [{"found": [None]}] * 3
        requests = [asking(opening_of(body)) for body in bodies]
        requests += [asking(opening(small(), signed=text)) for text in BROKEN]
        assert [answer for answer in ask(requests) if "error" not in answer] == []

    def test_what_is_no_value_has_the_number_that_python_gives(self, ask: Ask) -> None:
        listed = domain_of(["a", str(1 << 53), str(1 << 70), "?"])
        for domain in (listed, Texts(), Words("?0x\0", 27)):
            requests = [
                {"ask": "number", "domain": domain.to_json(), "value": value} for value in HELD
            ]
            due = [{"found": str(domain.number(value))} for value in HELD]
            assert ask(requests) == due

    def test_texts_of_every_length_have_the_number_that_python_gives(self, ask: Ask) -> None:
        # a block of SHA-256 has 64 bytes; the letters end at the longest text that fits 64 bits
        texts = ["ab" * (length // 2) + "b" * (length % 2) for length in range(132)]
        for domain in (Texts(), Words("ab", 40)):
            requests = [
                {"ask": "number", "domain": domain.to_json(), "value": text} for text in texts
            ]
            assert ask(requests) == [{"found": str(domain.number(text))} for text in texts]

    def test_silence_and_size_do_not_depend_on_the_value(self, ask: Ask) -> None:
        days = [-1, 0, 0.5, 1, 0, 3, 6, 7]
        turns = [START + round(86_400 * day) for day in days]
        task = small(memory=1)
        requests = []
        for value in ("a", "b", "unlisted", "x" * 10_000, 7, None):
            told = [{"seconds": seconds, "value": value} for seconds in turns]
            requests.append(asking(opening(task), told))
        shapes = {
            tuple(report and len(report) for report in answer["found"]) for answer in ask(requests)
        }
        # the clock goes back in the fifth turn: nothing is sent
        assert shapes == {(None, 60, None, 60, None, 60, 60, None)}

    def test_words_of_the_system_are_drawn_anew(self, ask: Ask) -> None:
        task = small(memory=0, oracle=oracles.hashed(3, 1), epsilon=None, periods=20)
        turns = [{"seconds": START + 86_400 * day, "value": "a"} for day in range(-1, 20)]
        first, again = (answer["found"][1:] for answer in ask([asking(opening(task), turns)] * 2))
        assert len({report[58:] for report in first + again}) == 40
        # the ids are those of the secret
        assert [report[:58] for report in first] == [report[:58] for report in again]

    def test_sealed_reports_open_for_the_aggregator_alone(self, ask: Ask) -> None:
        aggregator, other = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
        task = small(memory=1, aggregator=aggregator.public_key())
        turns = [{"seconds": START + 86_400 * day, "value": "a"} for day in (-1, 0, 1, 2)]
        first, again = (answer["found"] for answer in ask([asking(opening(task), turns)] * 2))
        assert first[0] is None and {len(bytes.fromhex(each)) for each in first[1:]} == {30 + 81}
        # the same reports, sealed anew
        assert not set(first[1:]) & set(again[1:])
        plain = [unsealed(task, aggregator, sent[1:]) for sent in (first, again)]
        assert plain[0] == plain[1] and len(set(plain[0])) == 3
        sums = Aggregator(task, period=1)
        assert sums.add_many(plain[0]) == 1 and sums.refused == {"period": 2}
        with pytest.raises(WrongUse):
            unsealed(task, other, first[1:])

    def test_another_device_reports_as_if_it_had_been_opened(self, ask: Ask) -> None:
        secret = "ab" * 32
        turns = [{"seconds": START + second, "value": "a"} for second in (-1, 0)]
        (due,) = ask([asking(opening(small(), secret=secret), turns)])
        given = {
            "ask": "other",
            "open": opening(small()),
            "value": "a",
            "turns": [START - 1, START],
        }
        found = ask([given | {"secret": secret}, given | {"secret": "ab" * 31}])
        assert found[0] == {"found": due["found"][1]} and "32 bytes" in found[1]["error"]

    def test_calls_at_once_give_one_report(self, ask: Ask) -> None:
        given = {"ask": "together", "open": opening(small(memory=1)), "values": ["a", "b", "c"]}
        assert ask([given | {"turns": [START - 1, START]}]) == [{"found": 1}]


def python_client(body):
    """The client in Python, of any text that is signed and published."""
    given = opening_of(body)
    return Client(
        given["signed"].encode(),
        SECRET,
        MemoryStore(),
        trusted=[KEY.public_key()],
        published=given["published"],
        max_epsilon=1000,
        clock=lambda: START - 1,
    )


def unsealed(task, key, sent):
    (found,) = opened(task, key, [bytes.fromhex(each) for each in sent])
    return found
