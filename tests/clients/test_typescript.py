# SPDX-License-Identifier: Apache-2.0
"""The client for browsers and Node: the same bytes as Python, and the tasks that it refuses."""

import gzip
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.asking import answering
from tests.clients.contract import Ask, ClientContract, answers_unlisted, is_silent_outside
from tests.contracts.require import program as installed
from tools import telemetry_conformance as conformance

HERE = Path(__file__).parent
SOURCES = HERE.parents[1] / "clients" / "typescript"
RUN = str(HERE / "run.mjs")
RANDOM = re.compile(r"Math\s*\.\s*random|\bseed\w*\s*\(|\[\s*[\"']random")


@pytest.fixture(scope="module")
def program() -> list[str]:
    return [installed("node"), RUN]


@pytest.fixture(scope="module")
def ask(program: list[str]) -> Iterator[Ask]:
    with answering(program) as found:
        yield found


class TestNode(ClientContract):
    """Node."""


def changed_client(folder: Path, file: str, old: str, new: str) -> list[str]:
    """The program of a client in which a line of a file is another one."""
    shutil.copytree(SOURCES, folder / "clients" / "typescript")
    (folder / "tests" / "clients").mkdir(parents=True)
    shutil.copy(RUN, folder / "tests" / "clients")
    source = folder / "clients" / "typescript" / file
    text = source.read_text("utf-8")
    assert old in text
    source.write_text(text.replace(old, new), "utf-8")
    return [installed("node"), str(folder / "tests/clients/run.mjs")]


def test_the_runner_notices_one_wrong_weight(tmp_path):
    old, new = "w[1] < BigInt(o.truth) ? sign", "w[1] > BigInt(o.truth) ? sign"
    result = conformance.run(changed_client(tmp_path, "oracles.js", old, new))
    assert len(result.wrong) >= 10 and "No oracle is left out" in str(result)


MUTANTS = [
    ("client.js", "if (![...published].includes(hex(hash)))", "if (![...published].length)"),
    (
        "client.js",
        "    const task = this.#task;\n    const now = this.#clock();\n",
        (
            '    if (value === "not listed") return null;\n'
            "    const task = this.#task;\n    const now = this.#clock();\n"
        ),
    ),
]


@pytest.mark.parametrize("changes", MUTANTS, ids=["any list", "silent"])
def test_a_client_that_takes_any_task_or_is_silent_is_noticed(tmp_path, changes):
    with answering(changed_client(tmp_path, *changes)) as ask:
        noticed = [answers_unlisted(ask), is_silent_outside(ask)]
    assert noticed == [changes is MUTANTS[0], changes is MUTANTS[1]]


def test_a_client_may_lack_an_oracle_and_then_refuses_its_tasks(tmp_path, program):
    old = '  sketch: ["kind,part,rows", checkSketch, "texts"],\n'
    result = conformance.run(changed_client(tmp_path, "task.js", old, ""), {"sketch"})
    # prefixes and fragments are made of sketches
    assert result.wrong == () and {"fragments", "prefixes"} <= set(result.left_out)
    assert "lacks sketch: 14 files left out" in str(result)
    # a client that answers tasks which it should not know
    assert len(conformance.run(program, {"sketch"}).wrong) == 14


def test_a_program_that_gives_no_answers_has_them_all_wrong(capsys):
    for program in (["false"], ["echo", "no JSON"]):
        assert conformance.main(program) == 1
    said = capsys.readouterr().out
    assert "the program ended with status 1" in said and "no JSON" in said
    with pytest.raises(SystemExit):
        conformance.main(["--lacks", "unheard", "true"])


def test_no_generator_but_that_of_the_system():
    texts = [path.read_text("utf-8") for path in sorted(SOURCES.glob("*.js"))]
    assert len(texts) == 8
    assert not any(RANDOM.search(text) for text in texts)
    # what this check must notice
    mutant = texts[0] + "const bytes = () => Math.random() * 256;"
    assert RANDOM.search(mutant)
    assert sum(text.count("getRandomValues") for text in texts) == 1


def test_the_client_is_small():
    # as one bundle: no imports, comments, indentation. Names stay as they are: a minifier (esbuild
    # 0.28) makes 7,954 bytes of 10,590 such
    lines = [
        line.strip()
        for path in sorted(SOURCES.glob("*.js"))
        for line in path.read_text("utf-8").splitlines()
        if line.strip() and not line.strip().startswith(("//", "/**", "import "))
    ]
    assert len(gzip.compress("\n".join(lines).encode(), 9)) < 10_800
