# SPDX-License-Identifier: Apache-2.0
"""A charge is ended however often its caller is interrupted; whole questions: test_release."""

import pytest

from sfumato.errors import LedgerUnavailable
from sfumato.query.payer import abandon


@pytest.mark.parametrize("error", [KeyboardInterrupt, LedgerUnavailable])
@pytest.mark.parametrize(("fails", "ended"), [(0, True), (2, True), (3, False)])
def test_a_charge_is_ended_at_the_third_attempt_at_the_latest(
    error: type[BaseException], fails: int, ended: bool
) -> None:
    class Ledger:
        tries, ended = 0, False

        def abandon(self, charge: str, *, fence: int) -> None:
            self.tries += 1
            if self.tries <= fails:
                raise error("not now")
            self.ended = True

    ledger = Ledger()
    abandon(ledger, "charge")
    assert ledger.ended == ended
