# SPDX-License-Identifier: Apache-2.0
"""What was stored is never written again."""

import pytest

from tests.stored import questions, write


def test_files_that_are_there_are_left_alone() -> None:
    def content() -> dict[str, bytes]:
        files = questions.FOLDER.rglob("*.*")
        return {str(path): path.read_bytes() for path in files if path.is_file()}

    before = content()
    with pytest.raises(SystemExit, match="never written again"):
        write.main()
    with pytest.raises(FileExistsError):
        write.write("events.json", {})
    assert content() == before
