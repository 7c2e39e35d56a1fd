# SPDX-License-Identifier: Apache-2.0
"""Storage backends of the ledger.

Begin with ``base``, the interface. ``sqlite`` is a file for one process, ``postgres`` a server for
many.
"""
