# SPDX-License-Identifier: Apache-2.0
"""The refusals of the service say the same whatever was asked for."""

import pickle

from sfumato.errors import Refused
from sfumato.service.refusals import NoAccount, NotVisible, SignInFailed, TooMany


def test_they_name_nothing_that_was_asked_for() -> None:
    for kind in (NotVisible, SignInFailed, NoAccount):
        assert str(kind()) == str(kind()) and isinstance(kind(), Refused)


def test_too_many_says_when_to_come_again() -> None:
    error = TooMany("Too many.", 7)
    assert "7 seconds" in str(error) and pickle.loads(pickle.dumps(error)).after == 7
