# SPDX-License-Identifier: Apache-2.0
"""What holds for every test and the processes that it starts: no file in the user's home, and one
thread for linear algebra.
"""

import os

# below a file there can be no folder, so no ledger is remembered unless a test names a folder
os.environ["XDG_STATE_HOME"] = f"{os.devnull}/state"

# Threads of OpenBLAS wait for each other busily: where two processes test on two cores, a search
# over matrices of 300 rows took twelve times the CPU seconds. It is read when numpy is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
