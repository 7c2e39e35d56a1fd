# SPDX-License-Identifier: Apache-2.0
"""What a session does for the owner of the data: checks of the data and of the ledger."""

from collections.abc import Callable

from sfumato.ledger.verify import Report, verify
from sfumato.query.data_check import DataCheck, check_data, require_owners
from sfumato.query.tasks import Tasks


class Owners(Tasks):
    """The methods of a session for the owner: ``check_data`` and ``verify``.

    ``_is_owners`` states whether exact counts of the data may be shown.
    """

    _is_owners: bool

    def check_data(self, *, report: Callable[[str], None] | None = None) -> DataCheck:
        """How all of the data is read, for its owner: exact counts, which are **not private**.

        Nothing is charged or stored. ``report`` is called with a line before each column.

        Raises:
            WrongUse: not the owner's own session (``require_owners``); or Spark reads the data.
            InvalidSource: a column cannot be read to its end.
        """
        self._door.require_open()
        require_owners(is_owners=self._is_owners)
        with self._door.inside():
            return check_data(self._engine, self._asker.dataset, report)

    def verify(self) -> Report:
        """Replays the ledger's journal and compares it with every stored row."""
        return verify(self._ledger)
