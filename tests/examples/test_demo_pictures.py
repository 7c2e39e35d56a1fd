# SPDX-License-Identifier: Apache-2.0
"""The network of the demo of learning reads most pictures rightly."""

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from sfumato.examples.demo_learning import _run_module
from tests.contracts.require import missing


@pytest.fixture(autouse=True)
def _torch() -> None:
    if find_spec("torch") is None:
        missing("torch", "PyTorch is not installed")


def test_it_is_the_same_network_at_each_call() -> None:
    from sfumato.examples.demo_pictures import network

    first, second = network().module.state_dict(), network().module.state_dict()
    assert all((first[name] == second[name]).all() for name in first)


@pytest.mark.long
def test_most_digits_are_read_rightly(tmp_path: Path) -> None:
    """A guess has 10%; a training about 94%, a point more or less."""
    said = _run_module("demo_pictures", str(tmp_path)).stdout
    found = re.match(r"([\d.]+)% of 450 pictures", said)
    assert found and float(found[1]) > 60
