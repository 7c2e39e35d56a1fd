# SPDX-License-Identifier: Apache-2.0
"""The service over HTTP: one table of routes, its server, and the Python client.

May import every room below it but ``engines`` and ``ledger``: it reaches data through the desk of
``service`` alone. Begin with ``routes``, the table from which ``openapi.json`` is made too; ``app``
answers one request; ``client`` is ``sf.remote``.
"""
