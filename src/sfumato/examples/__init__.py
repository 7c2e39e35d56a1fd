# SPDX-License-Identifier: Apache-2.0
"""Public and made-up data, sessions over them, and the demos of ``sfumato demo``.

The top room: it may import every other, and none imports it; the shell finds a demo by its name.
Begin with ``people``, then ``demo``, the demo of the census extract.
"""

import atexit
import shutil
import tempfile
from pathlib import Path

from sfumato.exact.rational import Number
from sfumato.examples.census import census
from sfumato.privacy.budget import Budget
from sfumato.query.connect import connect
from sfumato.query.session import Session


def people(epsilon: Number = 1) -> Session:
    """Opens a session over a census extract: the table ``people``, a row for each of 27,253 people.

    Its budget is ``epsilon``, with a delta of 1e-6.

    The extract is published, so the ledger may be temporary: it lies in a temporary folder, and
    each call opens a new one. Data of real people need one permanent ledger.

    Raises:
        InvalidNumber: the epsilon is no number.

    >>> import sfumato as sf
    >>> with sf.examples.people() as session:
    ...     session.budget.left
    Fraction(1, 1)
    """
    folder = tempfile.mkdtemp(prefix="sfumato-people-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return connect(
        {"people": census()},
        dataset="acs-2019",
        budget=Budget(epsilon=epsilon, delta="1e-6"),
        ledger=Path(folder) / "ledger.db",
    )


__all__ = ["people"]
