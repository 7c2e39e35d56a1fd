# SPDX-License-Identifier: Apache-2.0
"""Modules whose examples need an extra that is not installed are not collected."""

from importlib.util import find_spec

collect_ignore_glob = (
    [] if find_spec("torch") else ["sfumato/learning/torch/*", "sfumato/examples/demo_pictures.py"]
)
