# SPDX-License-Identifier: Apache-2.0
"""PyTorch is there, or its absence is a skip that says so; where it is required, a failure."""

from importlib.util import find_spec

from tests.contracts.require import missing


def test_pytorch_is_there() -> None:
    if find_spec("torch") is None:
        missing("torch", "no PyTorch here: make torch")
