# SPDX-License-Identifier: Apache-2.0
"""The client for the Java VM: the same bytes as Python, and the tasks that it refuses."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.asking import answering
from tests.clients.contract import (
    Ask,
    ClientContract,
    answers_unlisted,
    asking,
    is_silent_outside,
    small,
)
from tests.contracts.require import missing
from tests.contracts.require import program as installed
from tests.telemetry.test_sealing import RFC
from tools.telemetry_conformance import opening
from tools.telemetry_vectors import START

HERE = Path(__file__).parent
SOURCES = HERE.parents[1] / "clients" / "java" / "sfumato" / "telemetry"
# short processes: no second compiler, no threads that collect garbage
QUICK = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
RANDOM = re.compile(r"java\.util\.Random|Math\.random|setSeed|new SecureRandom|ThreadLocalRandom")
RECEIVER = (
    "04fe8c19ce0905191ebc298a9245792531f26f0cece2460639e8bc39cb7f706a82"
    "6a779b4cf969b8a0e539c7f62fb3d30ad6aa8f80e30f1d128aafd68a2ce72ea0"
)


@pytest.fixture(scope="session")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The client and its runner, compiled once."""
    compiler = shutil.which("javac") or missing("java", "no program 'javac' in PATH")
    folder = tmp_path_factory.mktemp("classes")
    sources = [*sorted(SOURCES.glob("*.java")), HERE / "Run.java"]
    options = (
        "-J-XX:TieredStopAtLevel=1",
        "-proc:none",
        "-Xlint:all,-try",
        "-Werror",
        "--release",
        "11",
    )
    subprocess.run([compiler, *options, "-d", folder, *sources], check=True, timeout=120)
    return folder


@pytest.fixture(scope="module")
def program(classes: Path) -> list[str]:
    return [installed("java"), *QUICK, "-cp", str(classes), "sfumato.telemetry.Run"]


@pytest.fixture(scope="module")
def ask(program: list[str]) -> Iterator[Ask]:
    with answering(program) as found:
        yield found


class TestJava(ClientContract):
    """The Java VM."""


MUTANTS = [
    ("published.contains(Bytes.hex(task.hash))", "!published.isEmpty()"),
    (
        "    long number = task.domain.number(value);\n",
        (
            '    if ("not listed".equals(value)) return null;\n'
            "    long number = task.domain.number(value);\n"
        ),
    ),
]


@pytest.mark.long
@pytest.mark.parametrize("changes", MUTANTS, ids=["any list", "silent"])
def test_a_client_that_takes_any_task_or_is_silent_is_noticed(
    classes: Path, tmp_path: Path, changes: tuple[str, str]
) -> None:
    old, new = changes
    text = (SOURCES / "Client.java").read_text("utf-8")
    assert old in text
    (tmp_path / "Client.java").write_text(text.replace(old, new), "utf-8")
    compiler = [installed("javac"), "-J-XX:TieredStopAtLevel=1", "-proc:none", "--release", "11"]
    given = ["-cp", classes, "-d", tmp_path, tmp_path / "Client.java"]
    subprocess.run([*compiler, *given], check=True, timeout=120)
    program = [installed("java"), *QUICK, "-cp", f"{tmp_path}:{classes}", "sfumato.telemetry.Run"]
    with answering(program) as ask:
        noticed = [answers_unlisted(ask), is_silent_outside(ask)]
    assert noticed == [changes is MUTANTS[0], changes is MUTANTS[1]]


def test_the_suite_is_that_of_the_rfc(ask: Ask) -> None:
    given = RFC | {"ask": "seal", "secret": RFC["sender"], "receiver": RECEIVER}
    assert ask([given]) == [{"found": RFC["made"] + RFC["sealed"]}]


def test_a_file_keeps_the_answer_of_an_epoch(ask: Ask, tmp_path: Path) -> None:
    def told(place: Path, *days: float) -> list[str | None]:
        turns = [{"seconds": START + round(86_400 * day), "value": "a"} for day in days]
        given = {"ask": "file", "path": str(place), "open": opening(small()), "turns": turns}
        (answer,) = ask([given])
        found: list[str | None] = answer["found"]
        return found

    kept = tmp_path / "kept"
    first = told(kept, -1, 0)
    assert first[0] is None and first[1] is not None
    # another client goes on where the first one ended: the same answer, once a period
    again = told(kept, 0, 1)
    assert again[0] is None and again[1] is not None and again[1][58:] == first[1][58:]
    (tmp_path / "kept").write_bytes(b"damaged")
    assert told(kept, 2, 6) == [None, None]
    # what Python keeps is the same bytes
    assert ask([{"ask": "twice", "path": str(kept)}])[0]["error"].startswith("IOException")
    assert "error" in ask([{"ask": "twice", "path": str(tmp_path / "none" / "kept")}])[0]


def test_a_store_that_cannot_be_written_sends_nothing(ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "kept.next").mkdir()
    given = {"ask": "file", "path": str(tmp_path / "kept"), "open": opening(small())}
    turns = [{"seconds": START - 1, "value": "a"}]
    assert "error" in ask([given | {"turns": turns}])[0]


def test_a_key_of_another_curve_is_no_trusted_key(ask: Ask) -> None:
    other = subprocess.run(
        ["openssl", "ecparam", "-name", "secp384r1", "-genkey", "-noout"],
        capture_output=True,
        check=True,
    )
    public = subprocess.run(
        ["openssl", "ec", "-pubout"], input=other.stdout, capture_output=True, check=True
    )
    for pem in (public.stdout.decode(), "", "-----BEGIN PUBLIC KEY-----\nAAAA\n", "no key"):
        (answer,) = ask([asking(opening(small(), trusted=[pem]))])
        assert "no public key of P-256" in answer["error"]


def test_no_generator_but_that_of_the_system() -> None:
    texts = [path.read_text("utf-8") for path in sorted(SOURCES.glob("*.java"))]
    assert len(texts) >= 20
    assert not any(RANDOM.search(text) for text in texts)
    # what this check must notice
    assert RANDOM.search(texts[0] + "byte each = (byte) new SecureRandom(seed).nextInt();")
    assert sum(text.count("SecureRandom.getInstance") for text in texts) == 1
    assert sum(text.count("generateSeed") for text in texts) == 1


def test_it_depends_on_java_alone() -> None:
    for path in SOURCES.glob("*.java"):
        imported = re.findall(r"^import (?:static )?(\w+)\.", path.read_text("utf-8"), re.M)
        assert set(imported) <= {"java", "javax"}
