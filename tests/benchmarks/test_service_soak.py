# SPDX-License-Identifier: Apache-2.0
"""The soak of the service notices a charge that no reply told of, and what grows."""

from pathlib import Path

import sfumato as sf
from benchmarks.service import COUNT, declared
from benchmarks.service_soak import Analyst, Asked, Size, of_charges, of_size


def missed(folder: Path, asked: list[Asked]) -> list[str]:
    """The checks that fail for what ann asked."""
    ann = Analyst(1, "ann", "", 0)
    ann.asked = asked
    return [figure.name for figure in of_charges(folder, [ann]) if not figure.holds]


def test_a_charge_without_a_reply_and_a_question_with_two_are_noticed(tmp_path: Path) -> None:
    with sf.load(declared(tmp_path, 50, limits={"ann": "1"})) as session:
        ann = session.asking_as("ann", "study")
        answers = [ann.query(f"{COUNT} WHERE age > {n}", epsilon="0.001") for n in range(2)]
    charges = [answer.charge_id for answer in answers]
    told = [Asked("", "", {answer.bytes}, {answer.charge_id}) for answer in answers]
    assert missed(tmp_path, told) == []
    assert missed(tmp_path, told[:1]) == ["accounts whose spending is not the sum of the replies"]
    twice = Asked("", "", {b"a", b"b"}, set(charges))
    assert missed(tmp_path, [twice]) == ["questions with two answers or two charges"]
    unanswered = [*told, Asked("", ""), Asked("", "", problems=[500, 402])]
    assert missed(tmp_path, unanswered) == [
        "questions without a reply",
        "questions refused but for the budget",
    ]


def test_what_grows_after_the_first_third_is_noticed() -> None:
    flat = [Size(50.0 + second, 9, 20) for second in range(10)] + [Size(60.0, 9, 20)] * 20
    assert all(figure.holds for figure in of_size(flat, 100))
    growing = [Size(50.0 + second, 9 + 4 * second, 20 + second) for second in range(60)]
    assert [figure.holds for figure in of_size(growing, 100)] == [False] * 2 + [True]
    files = [Size(50.0, 9, 20 + 2 * second) for second in range(60)]
    assert [figure.holds for figure in of_size(files, 100)] == [True, True, False]
