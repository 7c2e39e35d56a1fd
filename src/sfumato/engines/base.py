# SPDX-License-Identifier: Apache-2.0
"""What every engine promises."""

from collections.abc import Mapping
from typing import Protocol, TypeAlias

from sfumato.plan.status import Bounded

Codes: TypeAlias = tuple[int | None, ...]
# The integers of each part, one after the other, for each group that has a row.
Integers: TypeAlias = Mapping[Codes, tuple[int, ...]]


class Engine(Protocol):
    """Runs bounded plans over the tables that it was opened with."""

    def run(self, plan: Bounded, sampling_key: str) -> Integers:
        """The exact integers of a plan. A group without rows may be left out: it is all zeros.

        ``sampling_key`` orders the groups of a unit where some have to be dropped; the
        proof needs neither its secrecy nor its randomness (RULES 19).
        """
        ...

    def statement(self, plan: Bounded) -> str:
        """What the engine would run, for people to read."""
        ...
