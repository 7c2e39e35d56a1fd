# SPDX-License-Identifier: Apache-2.0
"""The examples of the pages have folders of their own: for temporary files, since ``check`` lists what others left in
one, and for what a user remembers of ledgers, as a reader has.
"""

import tempfile
from importlib.util import find_spec

import pytest

# without the extra its page is not tested; tests/learning/torch fails where it is required
collect_ignore = [] if find_spec("torch") else ["networks.md"]


@pytest.fixture(autouse=True)
def own_temporary_files(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What other processes have spilled is not seen; ledgers are remembered as for a reader."""
    folder = str(tmp_path_factory.mktemp("rows"))
    monkeypatch.setattr(tempfile, "tempdir", folder)
    monkeypatch.setenv("TMPDIR", folder)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
