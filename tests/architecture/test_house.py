# SPDX-License-Identifier: Apache-2.0
"""The house rules that a machine can keep: sizes, cycles, twins, names, proofs."""

import ast
import importlib
import re
import subprocess
import sys
import tomllib
from graphlib import TopologicalSorter

import pytest

from tests.architecture.structure import (
    FILES,
    ROOT,
    SOURCE,
    TESTS,
    code_lines,
    functions,
    imports,
    module_name,
    nodes,
)

# The only imports inside functions: what an optional output or an Arrow frame needs.
MAY_IMPORT_LATE = {
    "engines/scratch.py",
    "accounting/order_price.py",
    "engines/excel.py",
    "engines/result_rows.py",
    "graph/answer.py",
    "graph/synthesis.py",
    "engines/mysql.py",
    "engines/object_store.py",
    "synopsis/counts.py",
    "synopsis/stream.py",
    "synopsis/column.py",
    "synopsis/tables.py",
    "synthetic/export.py",
    "engines/postgres.py",
    "engines/remote.py",
    "engines/frame_source.py",
    "engines/spark.py",
    "engines/spark_frame.py",
    "engines/spark_quiet.py",
    "collector/places.py",
    "ledger/store/open.py",
    "mining/found.py",
    "query/answer.py",
    "query/answer_files.py",
    "query/marginal_table.py",
}
FORBIDDEN_NAMES = {"utils", "helpers", "common", "misc", "core", "manager"}


def relative(path):
    return path.relative_to(SOURCE).as_posix()


def test_every_rule_that_is_cited_is_written_down():
    rules = (ROOT / "docs" / "rules.md").read_text("utf-8")
    known = set(re.findall(r"^(\d+)\. ", rules, re.MULTILINE))
    told = [
        path
        for room in ("src", "tests")
        for path in (ROOT / room).rglob("*")
        if path.suffix in (".py", ".md")
    ]
    cited = {
        number
        for path in told
        for number in re.findall(r"\bRULES\s+(\d+)", path.read_text("utf-8"))
    }
    assert known == {str(number) for number in range(1, 29)} and {"13", "24"} <= cited <= known


def test_guards_of_the_guarantee_hold_without_assert():
    # python -O takes every assert out
    rooms = {"accounting", "exact", "mechanisms", "noise", "privacy"}
    guarded = [
        relative(path)
        for path in FILES
        if relative(path).split("/")[0] in rooms
        and any(isinstance(node, ast.Assert) for node in nodes(path))
    ]
    assert not guarded


def rooms_above_query(folders):
    """The rooms on the floors above query, but for the owner's: demos, shell, service, files.

    The service is on a contract of its own: it opens ledgers and no engine.
    """
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    floors = contracts[0]["layers"]
    listed = {
        name.strip(" ()") for floor in floors[: floors.index("query")] for name in floor.split("|")
    }
    task_alone = [
        name
        for each in contracts
        if each.get("forbidden_modules") == ["sfumato.engines", "sfumato.ledger"]
        for name in each["source_modules"]
    ]
    assert "sfumato.service" in next(
        each["source_modules"]
        for each in contracts
        if each.get("forbidden_modules") == ["sfumato.engines"]
    )
    return (listed & folders) - {"cli", "config", "examples", "service"}, {
        each.removeprefix("sfumato.") for each in task_alone
    }


def test_every_room_above_query_reaches_data_through_a_task_alone():
    folders = {path.name for path in SOURCE.iterdir() if path.is_dir()}
    above, bound = rooms_above_query(folders)
    assert above <= bound
    # a room that is built later is missed
    above, bound = rooms_above_query(folders | {"console"})
    assert above - bound == {"console"}


def test_distances_are_claimed_where_they_are_proved():
    # a task that made its own bounded plan would claim what nobody has proved
    makers = {"Bounded", "BoundedCube"}
    claims = {
        relative(path)
        for path in FILES
        for node in nodes(path)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in makers
    }
    assert claims == {"query/passes/bound.py", "query/passes/cube.py"}


# What the note of a statistic must prove, by what the statistic derives from.
PROVED = {
    "BoundedStatistic": ("distance", "exact"),
    "GroupedScores": ("distance", "exact"),
    "UnitsByKey": ("groups", "distance", "exact"),
    "UnitVectors": ("length", "squared", "added"),
    "OfGraph": ("moves", "exact"),
    "LadderStatistic": ("rung_distance", "exact"),
}


BASES = ("GroupedScores", "LadderStatistic", "OfGraph", "UnitsByKey")
# Rooms whose page is named by the word that readers look for.
PAGES = {"graph": "graphs"}


def test_every_bounded_statistic_has_a_proof_note():
    found = set()
    for path in FILES:
        for node in nodes(path):
            # what a base leaves to its classes is proved of each of them
            if not isinstance(node, ast.ClassDef) or node.name in BASES:
                continue
            bases = {ast.unparse(base).partition("[")[0] for base in node.bases}
            for base in bases & set(PROVED):
                note = path.with_suffix(".proof.md").read_text("utf-8")
                for name in PROVED[base]:
                    assert f"- `{node.name}.{name}`" in note, node.name
                found.add(base)
    assert found == set(PROVED)


def test_files_are_short():
    lines = {relative(path): len(path.read_text().splitlines()) for path in FILES}
    # all that a session does stands in one class, most of it docstrings
    most = {"query/session.py": 800}
    long = {name: count for name, count in lines.items() if count > most.get(name, 500)}
    assert not long, "500 lines is the limit; split by idea"


def test_functions_are_short():
    long = {
        f"{relative(path)}:{node.name}": n
        for path in FILES
        for node in functions(path)
        if (n := code_lines(path, node)) > 50
    }
    assert not long


def test_functions_have_few_parameters():
    # a keyword-only parameter names itself at the call; dataclass-like constructors of columns have
    # few anyway
    many = [
        f"{relative(path)}:{node.name}"
        for path in FILES
        for node in functions(path)
        if len(
            [
                each
                for each in (*node.args.posonlyargs, *node.args.args)
                if each.arg not in ("self", "cls")
            ]
        )
        > 6
    ]
    assert not many


def test_nothing_is_named_after_nothing():
    assert not [relative(path) for path in FILES if path.stem in FORBIDDEN_NAMES]


def test_every_file_says_its_licence_and_its_idea():
    for path in FILES:
        text = path.read_text()
        assert text.startswith("# SPDX-License-Identifier: Apache-2.0\n"), relative(path)
        assert ast.get_docstring(nodes(path)[0]), relative(path)


def test_imports_stand_at_the_top():
    late = {relative(path) for path in FILES for _, inside in imports(path) if inside}
    assert late <= MAY_IMPORT_LATE


def test_there_are_no_import_cycles():
    names = {module_name(path) for path in FILES}
    graph = {module_name(path): set() for path in FILES}
    for path in FILES:
        for node, _ in imports(path):
            for target in imported(node):
                while target and target not in names:
                    target = target.rpartition(".")[0]
                if target and target != module_name(path) and target != "sfumato":
                    graph[module_name(path)].add(target)
    TopologicalSorter(graph).prepare()


def imported(node):
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [f"{node.module}.{alias.name}" for alias in node.names]


def test_every_module_has_a_test_twin():
    twins = {path.name for path in TESTS}
    modules = [path for path in FILES if path.name not in ("__init__.py", "__main__.py")]
    assert not [relative(path) for path in modules if f"test_{path.name}" not in twins]


def test_every_public_name_is_documented():
    docs = "\n".join(path.read_text() for path in (ROOT / "docs").glob("*.md"))
    root = importlib.import_module("sfumato")
    assert not [name for name in root.__all__ if not re.search(rf"\b{name}\b", docs)]


@pytest.mark.parametrize(
    "room",
    sorted(
        path.parent.name
        for path in FILES
        if path.name == "__init__.py" and path.parent.parent == SOURCE
    ),
)
def test_every_room_has_a_page_with_its_public_names(room):
    page = (ROOT / "docs" / f"{PAGES.get(room, room)}.md").read_text()
    names = getattr(importlib.import_module(f"sfumato.{room}"), "__all__", [])
    assert not [name for name in names if not re.search(rf"\b{name}\b", page)]


@pytest.mark.parametrize(
    "page", sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))
)
def test_every_page_begins_with_what_its_reader_can_do(page):
    title, first = (ROOT / page).read_text("utf-8").split("\n\n", 2)[:2]
    promise = "读完本页" if page.startswith("docs/zh/") else "Afterwards you can "
    assert title.startswith("# ") and promise in first


def test_every_file_that_contributing_names_exists():
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    # X/y.py stands for any file
    named = set(re.findall(r"`([\w.-]+/[\w./-]+\.\w+)`", text)) - {"X/y.py", "tests/X/test_y.py"}
    places = (ROOT, SOURCE, SOURCE / "privacy")
    assert len(named) > 80
    assert not [name for name in named if not any((place / name).exists() for place in places)]


def test_every_room_says_what_it_may_import_and_where_to_begin():
    for path in SOURCE.glob("*/__init__.py"):
        text = ast.get_docstring(nodes(path)[0]) or ""
        assert "ay import" in text and "Begin" in text, relative(path)


def test_every_guarantee_has_a_test_of_the_same_words():
    tests = {
        name for path in TESTS for name in re.findall(r"^ *def (test_\w+)", path.read_text(), re.M)
    }
    missing = [f"{place}: {name}" for place, name in guarantees() if name not in tests]
    assert not missing


def guarantees():
    for path in FILES:
        for node in nodes(path):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                for line in lines_of_guarantees(ast.get_docstring(node) or ""):
                    words = re.sub(r"[^a-z0-9]+", "_", line.lower()).strip("_")
                    yield f"{relative(path)}:{node.name}", f"test_{words}"


def lines_of_guarantees(docstring):
    block = re.search(r"^Guarantees:\n((?:[ ]{4}.+\n?)+)", docstring, re.MULTILINE)
    return [line.strip() for line in block[1].splitlines()] if block else []


def test_guarantees_are_found_at_all():
    assert len(list(guarantees())) >= 40


def test_every_proof_note_is_fresh():
    result = subprocess.run(
        [sys.executable, "tools/proofs.py", "check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr


def test_a_stale_proof_note_is_noticed(tmp_path):
    tool = importlib.import_module("tools.proofs")
    (tmp_path / "law.py").write_text("def f(x):\n    return x\n")
    note = tmp_path / "law.proof.md"
    for never_recorded in ("pending", "0", ""):
        note.write_text(f"- `f`: `{never_recorded}`\n")
        assert tool.stale(note) == ["law.py:f"]
    tool.update(note)
    assert tool.stale(note) == []
    (tmp_path / "law.py").write_text(
        'def f(x):\n    """Words do not count."""\n    return x  # nor comments\n'
    )
    assert tool.stale(note) == []
    (tmp_path / "law.py").write_text("def f(x):\n    return x + 1\n")
    assert tool.stale(note) == ["law.py:f"]
    # a function that is gone stays stale, also where its note is recorded again
    (tmp_path / "law.py").write_text("def g(x):\n    return x\n")
    assert tool.stale(note) == ["law.py:f"]
    tool.update(note)
    assert tool.stale(note) == ["law.py:f"]


def test_requirements_hold_hashes_and_no_addresses():
    for path in (ROOT / "requirements").glob("*.txt"):
        text = path.read_text()
        pins = re.findall(r"^[a-z0-9\-\[\]_.]+==", text, re.MULTILINE)
        assert pins and text.count("--hash=sha256:") >= len(pins), path.name
        assert "://" not in text and "--index-url" not in text, path.name
