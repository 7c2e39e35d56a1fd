# SPDX-License-Identifier: Apache-2.0
"""Groups are handed out whole, and what needs one server is one group."""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from xdist.remote import Producer

from tests.contracts.order import MARIADB, SOURCES, SPARK, Groups, group, heaviest_first

# what a file or a server sets up is set up once in each process that runs its tests
SERVERS = {"spark": SPARK, "mariadb": MARIADB}


class Worker:
    """Stands for a process: which tests it was sent, and whether it may end."""

    def __init__(self) -> None:
        self.sent: list[list[int]] = []
        self.shutting_down = False
        self.gateway = SimpleNamespace(id="gw")

    def send_runtest_some(self, places: list[int]) -> None:
        self.sent.append(places)

    def shutdown(self) -> None:
        self.shutting_down = True


def scheduler_of(tests, workers):
    config = SimpleNamespace(
        getvalue={"tx": ["popen"] * len(workers)}.__getitem__,
        option=SimpleNamespace(loadscopereorder=False),
    )
    scheduler = Groups(config, Producer("order", enabled=False))
    for worker in workers:
        scheduler.add_node(worker)
        scheduler.add_node_collection(worker, tests)
    scheduler.schedule()
    return scheduler


def test_a_group_is_handed_out_whole_and_in_order():
    tests = [
        "tests/engines/test_spark_cube.py::test_a",
        "tests/engines/test_spark.py::test_b[1::2]",
        "tests/engines/test_spark.py::TestIt::test_c[@]",
        *(f"tests/sql/test_{name}.py::test_{number}" for name in "defg" for number in range(3)),
    ]
    first, second = Worker(), Worker()
    scheduler = scheduler_of(tests, [first, second])
    assert first.sent == [[0, 1, 2]]
    assert second.sent == [[3, 4, 5]]
    scheduler.mark_test_complete(second, 3)
    assert second.sent[1:] == [[6, 7, 8]]
    for place in (0, 1, 2):
        scheduler.mark_test_complete(first, place)
    assert first.sent[1:] == [[9, 10, 11]]


def test_what_a_process_that_died_did_not_finish_is_handed_out_again_and_nothing_else():
    tests = [f"tests/sql/test_{name}.py::test_{number}" for name in "abcde" for number in range(2)]
    first, second = Worker(), Worker()
    scheduler = scheduler_of(tests, [first, second])
    assert first.sent == [[0, 1], [4, 5]]
    assert second.sent == [[2, 3], [6, 7]]
    for place in (0, 1, 4):
        scheduler.mark_test_complete(first, place)
    assert first.sent[2:] == [[8, 9]]
    assert scheduler.remove_node(first) == tests[5]
    for place in (2, 3, 6, 7):
        scheduler.mark_test_complete(second, place)
    assert second.sent[2:] == [[5], [8, 9]]
    for place in (5, 8, 9):
        scheduler.mark_test_complete(second, place)
    assert scheduler.tests_finished
    assert not scheduler.has_pending


@pytest.mark.parametrize(
    ("test", "name"),
    [
        ("tests/engines/test_spark_kind.py::test_a[b]", SPARK),
        ("tests/benchmarks/test_bench.py::test_a", SPARK),
        ("tests/engines/test_prepared.py::test_a", MARIADB),
        ("tests/architecture/test_house.py::test_a", SOURCES),
        ("tests/sql/test_lower.py::TestIt::test_a[::]", "tests/sql/test_lower.py"),
        ("docs/sql.md::sql.md", "docs/sql.md"),
    ],
)
def test_a_group_is_a_file_or_the_files_that_share_something(test, name):
    assert group(test) == name


def test_each_test_that_needs_a_server_is_in_its_group(request):
    """In ``make test`` these are all tests; in a run of one file there are few to see."""
    needed = {
        (item.nodeid, SERVERS[fixture])
        for item in request.session.items
        for fixture in SERVERS.keys() & set(getattr(item, "fixturenames", ()))
    }
    assert {(test, group(test)) for test, _ in needed} == needed


def test_the_heaviest_come_first_and_what_has_no_record_before_them():
    names = [
        "tests/new/test_new.py",
        "tests/sql/test_lower.py",
        "tests/engines/test_spark_kind.py",
    ]
    items = [SimpleNamespace(nodeid=f"{name}::test_{n}") for n in (1, 2) for name in names]
    expected = [names[0], names[0], names[2], names[2], names[1], names[1]]
    assert [item.nodeid.split("::")[0] for item in heaviest_first(items)] == expected


def test_no_example_stands_in_a_docstring_of_a_test_where_none_is_looked_for():
    tests = Path(__file__).parents[1]
    starts = re.compile(r"^ *>>> ", re.MULTILINE)
    assert not [path for path in tests.rglob("*.py") if starts.search(path.read_text("utf-8"))]
    assert starts.search((tests.parent / "src/sfumato/errors.py").read_text("utf-8"))
