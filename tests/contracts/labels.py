# SPDX-License-Identifier: Apache-2.0
"""Names of test cases that are the same in every process."""

import re


def label(value: object) -> str:
    """The first 40 characters of a representation, without the addresses in it."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value)[:200])[:40]
