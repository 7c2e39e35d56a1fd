# SPDX-License-Identifier: Apache-2.0
"""Pictures in grey beside each other, each with a label."""

import struct
import zlib
from base64 import b64encode
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.show.svg import WIDTH, Figure, svg_document, xml_text

_LEFT, _TOP, _GAP, _SIDE = 20, 56, 16, 104


def picture_chart(
    title: str,
    pictures: Sequence[tuple[str, NDArray[np.float64]]],
    low: float,
    high: float,
) -> Figure:
    """Draws two-dimensional arrays, ``low`` black and ``high`` white.

    >>> picture_chart("means", [("eye", np.eye(2))], 0, 1).svg.count("<image")
    1
    """
    elements = [f'<text x="{_LEFT}" y="24" class="t">{xml_text(title)}</text>']
    across = (WIDTH - _LEFT) // (_SIDE + _GAP)
    for place, (label, array) in enumerate(pictures):
        x = _LEFT + place % across * (_SIDE + _GAP)
        y = _TOP + place // across * (_SIDE + 2 * _GAP)
        data = b64encode(_png(array, low, high)).decode()
        elements.append(f'<text x="{x}" y="{y - 6}" class="h">{xml_text(label[:16])}</text>')
        elements.append(
            f'<image x="{x}" y="{y}" width="{_SIDE}" height="{_SIDE}" '
            f'style="image-rendering:pixelated" href="data:image/png;base64,{data}"/>'
        )
    rows = -(-len(pictures) // across)
    height = _TOP + rows * (_SIDE + 2 * _GAP)
    return Figure(svg_document(height, title, "".join(elements)))


def _png(array: NDArray[np.float64], low: float, high: float) -> bytes:
    """Returns an array as a PNG of 8-bit greys."""
    grey = np.clip((array - low) / (high - low) * 255, 0, 255).round().astype(np.uint8)
    height, width = grey.shape
    # each line begins with the number of its filter, here none
    lines = np.insert(grey, 0, 0, axis=1).tobytes()
    chunks = (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)),
        (b"IDAT", zlib.compress(lines, 9)),
        (b"IEND", b""),
    )
    written = b"\x89PNG\r\n\x1a\n"
    for name, body in chunks:
        written += struct.pack(">I", len(body)) + name + body
        written += struct.pack(">I", zlib.crc32(name + body))
    return written
