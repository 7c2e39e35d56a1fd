# SPDX-License-Identifier: Apache-2.0
"""Reads the files of an owner: TOML sections, and the CSV files beside them, to values.

May import every room of capabilities and what is below; none of them may import it. Begin with
``load``, which opens the session of a ``sfumato.toml``. Each other section has a module.
"""
