# SPDX-License-Identifier: Apache-2.0
"""Tools for tests and teaching: statistical asserts, replayable entropy, enumerated sensitivities.

May import every room up to ``query``; no shipped code may import it. Begin with ``asserts``: a
statistical test states its false-alarm probability and the deviation that it is sure to detect.
"""

from sfumato.testing.asserts import (
    assert_at_most,
    assert_counts_agree,
    assert_counts_follow,
    assert_follows,
)
from sfumato.testing.entropy import Replay
from sfumato.testing.sensitivity import LocalSensitivity, global_sensitivity, local_sensitivity

__all__ = [
    "LocalSensitivity",
    "Replay",
    "assert_at_most",
    "assert_counts_agree",
    "assert_counts_follow",
    "assert_follows",
    "global_sensitivity",
    "local_sensitivity",
]
