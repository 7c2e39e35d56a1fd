# SPDX-License-Identifier: Apache-2.0
"""The client for browsers and Node: the same bytes as Python, and the tasks that it refuses."""

import gzip
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.asking import answering
from tests.clients.contract import Ask, ClientContract
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


def test_the_runner_notices_one_wrong_weight(tmp_path):
    shutil.copytree(SOURCES, tmp_path / "clients" / "typescript")
    (tmp_path / "tests" / "clients").mkdir(parents=True)
    shutil.copy(RUN, tmp_path / "tests" / "clients")
    source = tmp_path / "clients" / "typescript" / "oracles.js"
    text = source.read_text("utf-8")
    mutant = text.replace("w[1] < BigInt(o.truth) ? sign", "w[1] > BigInt(o.truth) ? sign")
    assert mutant != text
    source.write_text(mutant, "utf-8")
    program = [installed("node"), str(tmp_path / "tests/clients/run.mjs")]
    wrong = conformance.failures(program)
    assert len(wrong) >= 10


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
    # 0.28) makes 7,889 bytes of the 10,459 that these are
    lines = [
        line.strip()
        for path in sorted(SOURCES.glob("*.js"))
        for line in path.read_text("utf-8").splitlines()
        if line.strip() and not line.strip().startswith(("//", "/**", "import "))
    ]
    assert len(gzip.compress("\n".join(lines).encode(), 9)) < 10_600
