# SPDX-License-Identifier: Apache-2.0
"""Parts of a machine that a test needs and a user may lack: a skip that names it, or a failure."""

import os
import shutil
from typing import NoReturn

import pytest

# Modules outside learning/torch that need PyTorch, by their path in tests/: without it they are not
# collected, and learning/torch/test_required.py says so.
NEED_TORCH = (
    "attacks/test_objects.py",
    "attacks/test_visible.py",
    "contracts/rooms.py",
    "contracts/walk.py",
    "query/test_silence.py",
    "stored",
)


def missing(part: str, reason: str) -> NoReturn:
    """Skips; fails where ``SFUMATO_REQUIRE`` (names, separated by commas) lists the part."""
    if part in os.environ.get("SFUMATO_REQUIRE", "").split(","):
        pytest.fail(f"{reason}, and SFUMATO_REQUIRE names {part}", pytrace=False)
    pytest.skip(reason)


def program(part: str) -> str:
    """The path of a program, which the machine must have."""
    return shutil.which(part) or missing(part, f"no program {part!r} in PATH")
