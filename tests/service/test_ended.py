# SPDX-License-Identifier: Apache-2.0
"""What ended without an answer says whether it was charged."""

from sfumato.errors import EngineFailed
from sfumato.service.ended import Ended


def test_it_carries_the_error_and_the_charge() -> None:
    error = EngineFailed()
    ended = Ended(error, charged=None)
    assert ended.error is error and ended.charged is None and str(ended) == "EngineFailed"
