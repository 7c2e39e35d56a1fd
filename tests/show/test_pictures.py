# SPDX-License-Identifier: Apache-2.0
"""Pictures in grey: each is a PNG whose bytes are those of the array."""

import re
import struct
import zlib
from base64 import b64decode

import numpy as np

from sfumato.show.pictures import picture_chart


def test_each_picture_is_a_png_of_its_greys() -> None:
    array = np.array([[0.0, 0.5, 1.0], [2.0, -1.0, 0.25]])
    svg = picture_chart("means", [("eye <b>", array), ("ear", array)], 0, 1).svg
    assert "eye &lt;b&gt;" in svg
    first, second = re.findall(r"base64,([^\"]+)", svg)
    assert first == second
    written = b64decode(first)
    assert written.startswith(b"\x89PNG\r\n\x1a\n")
    assert struct.unpack(">II", written[16:24]) == (3, 2)
    start = written.index(b"IDAT")
    (length,) = struct.unpack(">I", written[start - 4 : start])
    lines = zlib.decompress(written[start + 4 : start + 4 + length])
    assert list(lines) == [0, 0, 128, 255, 0, 255, 0, 64]


def test_pictures_go_on_in_further_lines() -> None:
    many = [(str(place), np.zeros((2, 2))) for place in range(9)]
    assert (
        len(set(re.findall(r'<image x="\d+" y="(\d+)"', picture_chart("m", many, 0, 1).svg))) == 2
    )
