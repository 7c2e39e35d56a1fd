# SPDX-License-Identifier: Apache-2.0
"""Reads text files that people write beside the data: declarations, codebooks, public counts."""

import codecs
import re
from pathlib import Path

from sfumato.errors import InvalidConfig, shown

_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_HAN = re.compile("[\u3000-\u303f\u4e00-\u9fff\uff00-\uffef]")


def side_text(path: str | Path) -> str:
    """Returns the text of a file in UTF-8 (with a byte order mark or without), GB18030 or UTF-16.

    Raises:
        OSError: the file cannot be read.
        InvalidConfig: the file is in none of these encodings; the error names the line of the first
            wrong byte.
    """
    data = Path(path).read_bytes()
    encoding = "utf-16" if data.startswith(_UTF16) else "utf-8-sig"
    wrong = 0
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        wrong = error.start
    if encoding == "utf-8-sig" and _is_chinese(data):
        try:
            return data.decode("gb18030")
        except UnicodeDecodeError as error:
            wrong = error.start
    line = data[:wrong].count(b"\n") + 1
    raise InvalidConfig(
        f"{shown(path)}: line {line} is no text in UTF-8, GB18030 or UTF-16.",
        allowed="UTF-8, with a byte order mark or without; GB18030; UTF-16 with one",
        remedy="Save the file as UTF-8.",
    )


def required_text(path: str | Path, allowed: str = "") -> str:
    """Returns the decoded text of a file, as ``side_text`` does; raises InvalidConfig if the file
    cannot be read.

    ``allowed`` says what the file should be.

    Raises:
        InvalidConfig: it cannot be read, or is in none of the encodings.
    """
    try:
        return side_text(path)
    except OSError as error:
        problem = f"{shown(path)} cannot be read ({error.strerror})."
    raise InvalidConfig(problem, allowed=allowed)


def _is_chinese(data: bytes) -> bool:
    """Whether bytes are rather GB18030 than Latin-1, most of whose letters decode in it too.

    The bytes of common Chinese characters are both beyond ASCII; a letter of Latin-1 stands alone.
    """
    common = data.decode("gb2312", errors="replace")
    return len(_HAN.findall(common)) > 4 * common.count("\ufffd")
