# SPDX-License-Identifier: Apache-2.0
"""A charged question that ended without an answer, and whether it was charged."""

from sfumato.errors import SfumatoError


class Ended(Exception):
    """A question to the service failed with ``error``; ``charged`` is whether its cost was spent.

    None if that is unknown.

    It is None after a failure of the ledger within the question, for example, and while another
    question of the same account was charged at the same time.
    """

    def __init__(self, error: SfumatoError, *, charged: bool | None) -> None:
        self.error = error
        self.charged = charged
        super().__init__(type(error).__name__)
