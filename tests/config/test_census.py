# SPDX-License-Identifier: Apache-2.0
"""The declaration of a census in a file: what it means, and what is refused."""

from pathlib import Path

import pytest

from sfumato.config.census import read_census, read_totals
from sfumato.config.load import read_declarations
from sfumato.errors import InvalidConfig, WrongUse
from tests.cli.census_folder import CENSUS, write_folder


def test_a_census_is_planned_as_it_is_declared(tmp_path: Path):
    path = write_folder(tmp_path)
    declared = read_census(path, None)
    assert declared.name == "residents"
    dataset = read_declarations(path).dataset
    planned = declared.planned(dataset, {"rho": None, "epsilon": None, "delta": None})
    assert [planned.spine.levels[level] for level, _ in planned.design.tables] == [
        "state", "state", "county",
    ]  # fmt: skip
    assert str(planned.allowance.amount) == "1/2"
    assert planned.weights == {"state": 1.0, "county": 2.0}
    assert planned.impossible.sum() == 1
    assert planned.public.totals[0].tolist() == [9, 0]
    dearer = declared.planned(dataset, {"rho": None, "epsilon": "3", "delta": None})
    assert str(dearer.allowance.amount) == "3"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("[census.residents]", "[census.others]\n[census.residents]", r"2 tables \[census\.NAME\]"),
        ('levels = "state > county"', "", "levels is missing"),
        ('levels = "state > county"', 'level = "state > county"', "unknown key 'level'"),
        ('spine = "spine.csv"', 'spine = "nowhere.csv"', "cannot be read"),
        ('spine = "spine.csv"', 'spine = "people.csv"', "no column 'state'"),
        ("{county = 2}", "3", "weights = 3"),
    ],
)
def test_what_is_declared_wrongly_is_refused(tmp_path: Path, old, new, said):
    assert old in CENSUS
    path = write_folder(tmp_path, CENSUS.replace(old, new))
    dataset = read_declarations(path).dataset
    with pytest.raises(InvalidConfig, match=said):
        read_census(path, None).planned(dataset, {})


def test_several_tables_are_refused_by_name(tmp_path: Path):
    assert 'table = "people"' in CENSUS
    path = write_folder(tmp_path, CENSUS.replace('table = "people"', 'table = ["people", "homes"]'))
    dataset = read_declarations(path).dataset
    with pytest.raises(WrongUse, match="Several tables in one charge: 'people', 'homes'"):
        read_census(path, None).planned(dataset, {})


def test_a_file_without_a_census_is_refused(tmp_path: Path):
    with pytest.raises(InvalidConfig, match="census"):
        read_census(write_folder(tmp_path, ""), "residents")


def test_public_totals_are_read_from_a_file(tmp_path: Path):
    path = tmp_path / "totals.csv"
    path.write_text("level,area,total\nstate,A,7\ncounty,a1,3\n")
    assert read_totals(path) == {"state": {"A": 7}, "county": {"a1": 3}}
    for text in ("level,area\nstate,A\n", "level,area,total\nstate,A,many\n"):
        path.write_text(text)
        with pytest.raises(InvalidConfig, match="public totals"):
            read_totals(path)
    with pytest.raises(InvalidConfig, match="public totals"):
        read_totals(tmp_path / "nowhere.csv")
