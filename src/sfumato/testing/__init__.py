# SPDX-License-Identifier: Apache-2.0
"""What tests need, and nothing shipped may import: replayable entropy, strategies, asserts.

May import every room up to ``query``. Begin with ``asserts``: a statistical test states its
false-alarm probability and the deviation that it is sure to notice.
"""

from sfumato.testing.asserts import (
    assert_at_most,
    assert_counts_agree,
    assert_counts_follow,
    assert_follows,
)
from sfumato.testing.entropy import Replay

__all__ = [
    "Replay",
    "assert_at_most",
    "assert_counts_agree",
    "assert_counts_follow",
    "assert_follows",
]
