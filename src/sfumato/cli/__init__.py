# SPDX-License-Identifier: Apache-2.0
"""The command line: one file for each command.

May import every room below it. Begin with ``main``, which finds the file of a command. Exit codes:
0 success, 1 refused (budget, policy, SQL), 2 wrong usage or declaration, 3 failure.
"""
