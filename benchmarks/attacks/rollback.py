# SPDX-License-Identifier: Apache-2.0
"""An old copy of the account.

Given: the file of the account is put back after a charge.
Broken: what was spent can be spent again.
Right: refused.
Source: Parno et al., Memoir (S&P 2011).
"""

import os
import shutil
import tempfile

from benchmarks.attacks.case import Case, Seen, refused


def _sfumato() -> Seen:
    import pyarrow as pa

    import sfumato as sf

    tables = {"t": sf.Table(pa.table({"x": [1] * 9}), columns={"x": sf.Integer(0, 5)})}
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_STATE_HOME"] = folder
        place, copy = f"{folder}/ledger.db", f"{folder}/copy.db"

        def ask(least: int) -> object:
            with sf.connect(tables, dataset="d", budget=sf.Budget(1), ledger=place) as opened:
                text = f"SELECT COUNT(*) AS n FROM t WHERE x > {least}"
                return opened.query(text, epsilon="0.5").rows

        ask(0)
        shutil.copy(place, copy)
        ask(1)
        shutil.copy(copy, place)
        return refused(lambda: ask(2), sf.errors.LedgerIncomplete)


CASE = Case(
    __doc__,
    {"sfumato": _sfumato},
    not_expressed=("opendp", "diffprivlib", "pipelinedp", "python-dp", "smartnoise", "tumult"),
)
