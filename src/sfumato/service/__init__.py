# SPDX-License-Identifier: Apache-2.0
"""The service without its protocol: people, tokens, jobs, requests, and the desk.

May import every room below it but ``engines``; it opens ledgers, as the shell does. Begin with
``desk``: the one place where a person's question meets a session. ``state`` is the SQLite file of
people, tokens, requests and the trail; nothing about budgets is stored there, since a grant is an
account of the ledger.
"""
