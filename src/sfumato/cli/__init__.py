# SPDX-License-Identifier: Apache-2.0
"""The shell: one file per command.

May import every room below it. Begin with ``main``. Exit codes: 0 done, 1 refused (budget,
policy, language), 2 wrong use or declaration, 3 failure.
"""
