# SPDX-License-Identifier: Apache-2.0
"""CONTRIBUTING tells which of the trusted modules an SQL answer needs."""

import threading

from sfumato.noise.laplace import DiscreteLaplace
from tests.architecture.used_for_sql import modules_that_run, stated, table_of_corpus


def test_the_page_tells_which_trusted_modules_answer_sql():
    assert stated() == table_of_corpus(), "python -m tests.architecture.used_for_sql"


def test_functions_are_noticed_in_every_thread_and_imports_are_not():
    with modules_that_run() as ran:
        thread = threading.Thread(target=lambda: DiscreteLaplace(2).above(3))
        thread.start()
        thread.join()
    assert "noise.laplace" in ran and "query.session" not in ran
    with modules_that_run() as nothing:
        pass
    assert not nothing
