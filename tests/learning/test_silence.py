# SPDX-License-Identifier: Apache-2.0
"""Warnings are silent inside, whatever the filters are, and only there."""

import warnings
from contextlib import suppress

import pytest

from sfumato.learning.silence import Silence


def test_a_warning_is_neither_shown_nor_raised_inside() -> None:
    for filtered in ("always", "error"):
        silence = Silence()
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter(filtered)  # type: ignore[arg-type]
            with suppress(RuntimeError), silence:
                warnings.warn("inside", UserWarning, stacklevel=1)
                raise RuntimeError
            before = list(seen)
            with suppress(UserWarning):
                warnings.warn("outside", UserWarning, stacklevel=1)
        assert not before and len(seen) == (filtered == "always")


@pytest.mark.parametrize("broken", [False, True])
def test_filters_are_as_before_once_the_last_thread_has_left(broken: bool) -> None:
    """The broken version is that of the standard library, each thread by itself."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        before, one = warnings.filters[:], Silence()
        other = Silence() if broken else one
        one.__enter__()
        other.__enter__()
        one.__exit__(None, None, None)
        if not broken:
            warnings.warn("the other thread is inside", UserWarning, stacklevel=1)
        other.__exit__(None, None, None)
        assert (warnings.filters == before) is not broken
