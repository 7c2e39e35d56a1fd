# SPDX-License-Identifier: Apache-2.0
"""Clips as they are declared: both ends, their codes, and what is refused."""

from fractions import Fraction

import pytest

import sfumato as sf
from sfumato.errors import InvalidDeclaration, WrongUse
from sfumato.metadata.clip import Values, clip_codes, clip_ends, require_values
from sfumato.metadata.column import Column
from sfumato.plan.show import form

LOW, HIGH = Fraction(-10), Fraction(1000)


@pytest.mark.parametrize(
    ("clip", "ends"),
    [
        (None, None),
        (sf.AUTO, sf.AUTO),
        (200, (-10, 200)),
        ((0, 200), (0, 200)),
        ([0, "200.5"], (0, Fraction("200.5"))),
        ((-10, 1000), (-10, 1000)),
    ],
)
def test_a_number_is_the_upper_end_and_a_pair_is_both(clip, ends):
    assert clip_ends(clip, LOW, HIGH) == ends


@pytest.mark.parametrize(
    "clip",
    [
        1001, -10, -11, (5, 5), (6, 5), (-11, 5), (0, 1001), (1, 2, 3), (), "many", {1, 2}, (1,),
        float("nan"), 1e400, (0, float("nan")), {}, "1e400000",
    ],
)  # fmt: skip
def test_a_clip_that_is_no_part_of_the_possible_range_is_refused(clip):
    with pytest.raises(InvalidDeclaration, match="clip="):
        clip_ends(clip, LOW, HIGH)


def test_the_ends_of_an_integer_are_whole():
    assert sf.Integer(0, 10, clip="4.0").clip == (0, 4)
    with pytest.raises(InvalidDeclaration, match="Integer with clip"):
        sf.Integer(0, 10, clip="4.5")


def test_codes_are_steps_and_two_ends_on_one_step_are_refused():
    assert clip_codes((Fraction(1), Fraction(2)), lambda end: int(end * 8)) == (8, 16)
    with pytest.raises(InvalidDeclaration, match="one step"):
        sf.Real(0, 10, step=1, clip=(2, "2.25"))


def test_the_lattice_of_a_real_follows_its_clip():
    """RULES 12: a step of at most a millionth of what is kept."""
    assert sf.Real(0, 9900, clip=99).step == sf.Real(0, 99).step
    assert sf.Real(0, 9900).step > sf.Real(0, 99).step
    assert sf.Real(0, 9900, clip=99, step="0.5").step == Fraction(1, 2)
    # a clip that is not known yet may be a thousandth of the range
    assert sf.Real(0, 1024, clip=sf.AUTO).step == sf.Real(0, 1).step


def test_repr_states_the_clip():
    assert repr(sf.Integer(0, 9, clip=5, missing="N")) == "Integer(0, 9, clip=(0, 5), missing='N')"
    assert repr(sf.Real(0, 8, step=1, clip=(2, 4))) == "Real(0, 8, step=1, clip=(2, 4))"
    assert repr(sf.Integer(0, 9, clip=sf.AUTO)) == "Integer(0, 9, clip=sf.AUTO)"


def test_a_clip_is_no_part_of_the_form_of_a_column():
    """Answers that read no clipped value keep their keys when a clip is declared."""
    plain, clipped = (Column("x", sf.Integer(0, 9, **how)) for how in ({}, {"clip": 5}))
    assert form(plain) == form(clipped)
    assert form(plain.type) == form(clipped.type)
    assert plain.type != clipped.type


@pytest.mark.parametrize("values", [None, "clipped", True, sf.AUTO])
def test_values_are_named_by_an_object(values):
    assert require_values(sf.Clipped) is Values.CLIPPED
    assert repr(sf.Clipped) == "Clipped"
    with pytest.raises(WrongUse, match="values="):
        require_values(values)
