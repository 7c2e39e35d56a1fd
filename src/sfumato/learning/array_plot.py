# SPDX-License-Identifier: Apache-2.0
"""Draws vectors of the numbers of a fitted model as pictures in grey, where they are those of
two-dimensional arrays.
"""

from collections.abc import Sequence

from sfumato.errors import WrongUse
from sfumato.learning.features import Floats
from sfumato.learning.frames import FrameColumn
from sfumato.show.pictures import picture_chart
from sfumato.show.svg import Figure


def draw_arrays(
    kind: str,
    columns: Sequence[FrameColumn],
    vectors: Sequence[tuple[str, Floats]],
) -> Figure:
    """Draws the part of each labelled vector that belongs to a two-dimensional array column, -1
    black and 1 white; ``kind`` names what the vectors are.

    Raises:
        WrongUse: no column is an array of two dimensions.
    """
    pictures, names, begin = [], [], 0
    for column in columns:
        end = begin + column.width
        if len(column.shape) == 2:
            names.append(column.name)
            pictures += [
                (label, vector[begin:end].reshape(column.shape)) for label, vector in vectors
            ]
        begin = end
    if not names:
        raise WrongUse(
            f"A plot of {kind} of no picture.",
            allowed="a column declared as sf.Array of two dimensions: sf.Array((28, 28), 0, 255)",
            remedy="Models of earlier versions do not know the dimensions: fit again.",
        )
    return picture_chart(f"{kind} of {', '.join(names)}", pictures, -1, 1)
