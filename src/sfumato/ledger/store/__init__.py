# SPDX-License-Identifier: Apache-2.0
"""Where a ledger lies. Begin with ``base``, the protocol; ``sqlite`` is one file for one process,
``postgres`` a server for many."""
