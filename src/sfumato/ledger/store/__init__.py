# SPDX-License-Identifier: Apache-2.0
"""Where a ledger lies. Begin with ``base``, the protocol; ``sqlite`` is the embedded store."""
