# SPDX-License-Identifier: Apache-2.0
"""Keeps every test out of the user's home: no ledger is remembered, unless a test names a folder."""

import os

# below a file there can be no folder; processes that tests start inherit it
os.environ["XDG_STATE_HOME"] = f"{os.devnull}/state"
