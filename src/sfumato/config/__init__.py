# SPDX-License-Identifier: Apache-2.0
"""Reads the configuration files of an owner: sections of TOML, and the CSV files beside them.

May import every room of a capability and what is below; none of them may import it. Begin with
``load``, which opens the session of a ``sfumato.toml``. Every other section of the file has a
module here; ``section`` is the reader that they share.
"""
