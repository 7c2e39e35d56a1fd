# SPDX-License-Identifier: Apache-2.0
"""What PySpark prints of a failure: nothing of ours.

What is printed all the same is noticed in test_spark.
"""

import logging
import threading

from sfumato.engines.spark_quiet import PRINTERS, TALKERS, may_be_printed, quiet

RECORD = logging.LogRecord("any", logging.ERROR, "", 0, "canary", None, None)


def test_nothing_of_this_thread_is_printed_while_it_lasts():
    assert may_be_printed(RECORD)
    with quiet():
        assert not may_be_printed(RECORD)
        assert all(not logging.getLogger(name).filter(RECORD) for name in (*PRINTERS, *TALKERS))
        others = []
        thread = threading.Thread(target=lambda: others.append(may_be_printed(RECORD)))
        thread.start()
        thread.join()
        assert others == [True]
    assert may_be_printed(RECORD)
