# SPDX-License-Identifier: Apache-2.0
"""Sfumato against its peers, in one run: ``make bench``. Begin with ``noise``."""
