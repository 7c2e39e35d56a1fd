# SPDX-License-Identifier: Apache-2.0
"""The examples of the pages have a folder for temporary files of their own: ``check`` lists what others left in one."""

import tempfile
from importlib.util import find_spec

import pytest

# without the extra its page is not tested; tests/learning/torch fails where it is required
collect_ignore = [] if find_spec("torch") else ["networks.md"]


@pytest.fixture(autouse=True)
def own_temporary_files(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What other processes have spilled is not seen."""
    folder = str(tmp_path_factory.mktemp("rows"))
    monkeypatch.setattr(tempfile, "tempdir", folder)
    monkeypatch.setenv("TMPDIR", folder)
