# SPDX-License-Identifier: Apache-2.0
"""Fixtures of several rooms, the number of examples, and the order of the tests."""

import gc
import os
from collections.abc import Generator, Iterator
from importlib.util import find_spec

import pytest
from _pytest.doctest import DoctestModule
from hypothesis import settings
from xdist.remote import Producer

from tests.contracts.effort import CHANGE
from tests.contracts.mariadb import clinic, mariadb
from tests.contracts.order import Groups, heaviest_first
from tests.contracts.places import place
from tests.contracts.postgres import database, postgres
from tests.contracts.require import NEED_TORCH
from tests.contracts.shell import shell
from tests.contracts.spark import both, java_errors, spark

__all__ = [
    "both",
    "clinic",
    "database",
    "java_errors",
    "mariadb",
    "place",
    "postgres",
    "pytest_collect_file",
    "pytest_collection",
    "pytest_collection_modifyitems",
    "pytest_unconfigure",
    "pytest_xdist_make_scheduler",
    "shell",
    "spark",
]

collect_ignore = [] if find_spec("torch") else [*NEED_TORCH]

# Threads of torch wait for each other asleep, here and in the processes that tests start: busily,
# they take the cores from the other tests. It is read when torch is first imported.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

# `--hypothesis-profile long` replaces it
settings.load_profile(CHANGE)


@pytest.hookimpl(wrapper=True)
def pytest_collect_file() -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Looks for no examples in the docstrings of tests: there are none."""
    collectors = yield
    return [each for each in collectors if not isinstance(each, DoctestModule)]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Takes the collected tests, a million objects, out of garbage collection."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_unconfigure() -> None:
    gc.unfreeze()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Where several processes run the tests: begins with what takes longest."""
    if hasattr(config, "workerinput"):
        items[:] = heaviest_first(items)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Groups:
    """Hands out whole groups (``tests/contracts/order.py``)."""
    return Groups(config, log)
