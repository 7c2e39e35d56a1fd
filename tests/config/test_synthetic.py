# SPDX-License-Identifier: Apache-2.0
"""``[synthetic.NAME]`` of a file."""

import pytest

from sfumato.config.synthetic import public_counts, read_synthetic
from sfumato.errors import InvalidConfig, WrongUse
from sfumato.synthetic import Quantiles, public

FREE = {"epsilon": None, "rho": None, "delta": None}


def written(tmp_path, text):
    path = tmp_path / "sfumato.toml"
    path.write_text(text)
    return str(path)


def test_a_fit_is_read_with_its_constraints(tmp_path):
    path = written(
        tmp_path,
        """
        [synthetic.workers]
        table = "people"
        epsilon = "1"
        delta = "1e-9"
        bins = {pay = [10, 20]}
        workload = {pay = 3}
        require = ["age > 3"]
        implies = [["age < 15", "pay IS NULL"]]
        determines = [{column = "job", other = "pay", values = {none = 0}}]
        """,
    )
    found = read_synthetic(path, ["workers"], FREE)
    given = found.arguments
    assert found.tables == "people" and (given["epsilon"], given["delta"]) == ("1", "1e-9")
    assert given["options"].bins == {"pay": [10, 20]} and given["workload"] == {"pay": 3}
    assert [each.columns for each in given["constraints"]] == [
        ("age",),
        ("age", "pay"),
        ("job", "pay"),
    ]
    # a cost of the command replaces that of the file
    assert "epsilon" not in read_synthetic(path, ["workers"], {**FREE, "rho": "2"}).arguments


def test_any_other_name_is_a_table(tmp_path):
    found = read_synthetic(written(tmp_path, ""), ["people"], {**FREE, "rho": "2"})
    assert (found.tables, found.arguments) == ("people", {"rho": "2"})


def test_several_tables_are_a_fit_of_their_own(tmp_path):
    path = written(tmp_path, '[synthetic.both]\ntables = ["a", "b"]\norder = {b = "day"}\nrho = 1')
    found = read_synthetic(path, ["both"], FREE)
    assert found.tables == ["a", "b"] and found.arguments["options"].order == {"b": "day"}
    assert read_synthetic(path, ["a", "b"], {**FREE, "rho": "2"}).tables == ["a", "b"]


def test_texts_and_quantiles_are_declared(tmp_path):
    path = written(
        tmp_path,
        '[synthetic.w]\ntable = "people"\ntexts = {city = "(other)"}\n'
        "bins = {pay = {quantiles = 16}, age = 5}\ntriples = true",
    )
    options = read_synthetic(path, ["w"], FREE).arguments["options"]
    assert options.texts == {"city": "(other)"} and options.triples is True
    assert options.bins == {"pay": Quantiles(16), "age": 5}


def test_public_marginals_are_declared_here_and_in_csv_files(tmp_path):
    (tmp_path / "ages.csv").write_text("age,job,people\n13,smith,5\n\n14,,2\n")
    path = written(
        tmp_path,
        """
        [synthetic.w]
        table = "people"
        public = [
            {columns = "sex", counts = {F = 1, M = 3}},
            {columns = ["old", "job"], counts = [[true, "smith", 3], [false, {}, "1.5"]]},
            "ages.csv",
        ]
        """,
    )
    ages = public(["age", "job"], {("13", "smith"): 5, ("14", None): 2})
    given = read_synthetic(path, ["w"], FREE)
    assert given.arguments["constraints"] == [
        public("sex", {"F": 1, "M": 3}),
        public(["old", "job"], {(True, "smith"): 2, (False, None): 1}),
        ages,
    ]
    table = read_synthetic(path, ["people"], FREE)
    assert table.with_public(()) == table
    found = table.with_public([str(tmp_path / "ages.csv")])
    assert found.arguments["constraints"] == [ages]


@pytest.mark.parametrize(
    "counts",
    ["", "age,n\n13\n", "age,n\n13,x\n", "n\n3\n", "a,b,c,n\n1,2,3,4\n", "age,n\n1,2\n1,3\n"],
)
def test_other_files_of_counts_are_refused(tmp_path, counts):
    (tmp_path / "ages.csv").write_text(counts)
    with pytest.raises(WrongUse):
        public_counts(str(tmp_path / "ages.csv"))
    with pytest.raises(WrongUse):
        public_counts(str(tmp_path / "absent.csv"))


@pytest.mark.parametrize(
    "line",
    [
        'table = "p"\npublic = 3',
        'table = "p"\npublic = [{columns = "sex"}]',
        'table = "p"\npublic = [{columns = 5, counts = 5}]',
        'table = "p"\ndetermines = [{column = "job", other = "pay", values = 5}]',
        'table = "p"\nbins = 3',
        'table = "p"\nbins = {pay = {quintiles = 3}}',
        'shoe = 3\ntable = "people"',
        "rho = 1",
        'table = "people"\nimplies = ["a"]',
        'table = "p"\ndeterminee = 3',
        'table = "p"\ntables = ["p", "q"]',
        'tables = "p"',
    ],
)
def test_keys_that_mean_nothing_are_refused(tmp_path, line):
    with pytest.raises(InvalidConfig):
        read_synthetic(written(tmp_path, f"[synthetic.workers]\n{line}\n"), ["workers"], FREE)
