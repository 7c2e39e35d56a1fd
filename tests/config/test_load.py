# SPDX-License-Identifier: Apache-2.0
"""``sfumato.toml``: the example of the design, and every wrong key and type, named."""

import dataclasses
import datetime
from pathlib import Path

import pytest

import sfumato as sf
from sfumato.config.load import load, read_declarations
from sfumato.errors import (
    ContractMismatch,
    InvalidConfig,
    InvalidDeclaration,
    NotListed,
    WrongUse,
)
from sfumato.ledger import Ledger
from sfumato.metadata.server import Server

EXAMPLE = """\
dataset = "acs-2019"
ledger = "ledger.db"
[budget]
epsilon = "1"
delta = "1e-6"
[tables.people]
source = "adult.csv"
unit = {column = "person_id", max_rows = 1}
columns.age = {type = "integer", lower = 17, upper = 90, missing = "N"}
columns.sex = {type = "category", values = ["Female", "Male"]}
columns.occupation = {type = "text"}
"""
DATA = "person_id,age,sex,occupation\n" + "\n".join(
    f"p{n},{20 + n},{'Female' if n % 2 else 'Male'},clerk" for n in range(9)
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "adult.csv").write_text(DATA, encoding="utf-8")
    return tmp_path


def written(folder: Path, text: str = EXAMPLE, **replaced: str) -> Path:
    """The example with some of its lines replaced."""
    for old, new in replaced.items():
        line = next(each for each in text.splitlines() if each.replace(".", "_").startswith(old))
        text = text.replace(line, new)
    path = folder / "sfumato.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_example_of_the_design_opens_a_session(folder: Path) -> None:
    with load(written(folder)) as session:
        people = session.dataset.tables["people"]
        assert people.unit == sf.Unit("person_id", max_rows=1)
        assert people.columns == {
            "age": sf.Integer(17, 90, missing="N"), "sex": sf.Category("Female", "Male"), "occupation": sf.Text(),
        }  # fmt: skip
        assert session.budget.limit == sf.Budget(1, "1e-6")
        answer = session.query("SELECT COUNT(*) AS n FROM people", epsilon="0.5")
    assert answer.dataset == "acs-2019"
    assert (folder / "ledger.db").exists()


def test_every_type_and_option_can_be_written(folder: Path) -> None:
    text = """
dataset = "d"
ledger = "sub.db"
version = 7
relation = "replace-one"
[budget]
epsilon = 2
[tables.t]
source = "adult.csv"
size = 9
delimiter = ";"
encoding = "gbk"
decimal = ","
thousands = "."
unit = {column = "person_id", max_rows = 2, max_groups = 3, max_rows_total = 4}
[tables.t.columns]
a = {type = "real", lower = 0.5, upper = "99", step = "0.25", missing = ["N", "-"]}
b = {type = "date", lower = 1900-01-01, upper = "2010-12-31"}
c = {type = "boolean", true = "1", false = ["2", "3"], missing = "N"}
d = {type = "category", values = {1 = "one", 2 = "two"}}
e = {type = "integer", lower = -5, upper = 5}
f = {type = "date", lower = "1900-01-01", upper = "2010-12-31", format = "%d/%m/%Y"}
g = {type = "timestamp", lower = 2020-01-01, upper = 2020-12-31T18:30:00, zone = "Asia/Tokyo", step = 60, format = "%d/%m/%Y %H:%M"}
h = {type = "array", shape = [28, 28], lower = 0, upper = 255}
i = {type = "array", shape = 8, lower = -1, upper = 1, step = "0.25"}
"""
    declared = read_declarations(written(folder, text))
    table = declared.dataset.tables["t"]
    assert table.columns == {
        "a": sf.Real("0.5", 99, step="0.25", missing=["N", "-"]),
        "b": sf.Date(datetime.date(1900, 1, 1), datetime.date(2010, 12, 31)),
        "c": sf.Boolean(true="1", false=["2", "3"], missing="N"),
        "d": sf.Category({"1": "one", "2": "two"}),
        "e": sf.Integer(-5, 5),
        "g": sf.Timestamp(
            "2020-01-01",
            "2020-12-31 18:30",
            zone="Asia/Tokyo",
            step=60,
            format="%d/%m/%Y %H:%M",
        ),
        "f": sf.Date("1900-01-01", "2010-12-31", format="%d/%m/%Y"),
        "h": sf.Array((28, 28), 0, 255),
        "i": sf.Array(8, -1, 1, step="0.25"),
    }
    assert (table.size, table.delimiter) == (9, ";")
    assert table.reading == {"encoding": "gbk", "decimal": ",", "thousands": "."}
    assert table.unit == sf.Unit("person_id", 2, 3, 4)
    assert (declared.dataset.version, declared.dataset.relation) == ("7", sf.ReplaceOne)
    assert declared.ledger == folder / "sub.db"


def test_a_sheet_of_excel_is_declared(folder):
    path = written(folder, source='source = "people.xlsx"\nsheet = "Data 2024"\nheader_row = 3')
    people = read_declarations(path).dataset.tables["people"]
    assert (people.sheet, people.header_row) == ("Data 2024", 3)


def test_lines_above_the_names_of_a_csv_file_are_skipped(folder):
    path = written(folder, source='source = "people.csv"\nskip_rows = 2')
    people = read_declarations(path).dataset.tables["people"]
    assert people == dataclasses.replace(people, header_row=3)


HOSPITAL = """
dataset = "hospital"
ledger = "ledger.db"
[budget]
epsilon = 1
[tables.patients]
source = "patients.parquet"
unit = {column = "id", name = "patient", max_rows = 1}
[tables.visits]
source = "visits.parquet"
unit = {column = "patient_id", via = "patients.id", key = "id", max_rows = "auto"}
[tables.days]
source = "days.parquet"
unit = {column = ["patient", "day"], max_groups = 3, max_rows_total = "auto", spellings_apart = true}
[tables.drugs]
source = "drugs.parquet"
public = true
"""


def test_units_over_several_tables_can_be_written(tmp_path: Path) -> None:
    tables = read_declarations(written(tmp_path, HOSPITAL)).dataset.tables
    assert {name: table.unit for name, table in tables.items()} == {
        "patients": sf.Unit("id", max_rows=1, name="patient"),
        "visits": sf.Unit("patient_id", max_rows=sf.AUTO, via="patients.id", key="id"),
        "days": sf.Unit(
            ["patient", "day"], max_groups=3, max_rows_total=sf.AUTO, spellings_apart=True
        ),
        "drugs": None,
    }
    assert [name for name, table in tables.items() if table.public] == ["drugs"]


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ('key = "id"', "key = 5", "tables.visits.unit: key=5"),
        ('via = "patients.id"', 'via = "patients"', "tables.visits.unit: via='patients'"),
        ("apart = true", 'apart = "yes"', "tables.days.unit: spellings_apart='yes'"),
        ('via = "patients.id"', "via = 1", "tables.visits.unit: via=1"),
        ('max_rows = "auto"', 'max_rows = "AUTO"', "tables.visits.unit: max_rows = 'AUTO'"),
        (
            '["patient", "day"]',
            '["patient", "Patient"]',
            "tables.days.unit: A unit that names a column twice",
        ),
        ('["patient", "day"]', "[]", "tables.days.unit: A unit needs the name of its column"),
        ('["patient", "day"]', "3", "tables.days.unit: A unit needs the name of its column"),
        ('name = "patient"', "name = true", "tables.patients.unit: name=True"),
        ("public = true", 'public = "yes"', "tables.drugs: public='yes'"),
        (
            "public = true",
            'public = true\nunit = {column = "drug"}',
            "tables.drugs: A public table with a unit",
        ),
    ],
)
def test_a_wrong_unit_is_named_with_its_place(
    tmp_path: Path, old: str, new: str, named: str
) -> None:
    assert old in HOSPITAL
    with pytest.raises(InvalidConfig) as caught:
        read_declarations(written(tmp_path, HOSPITAL.replace(old, new)))
    assert caught.value.problem.startswith(named)


def test_a_way_to_no_unit_names_its_table(tmp_path: Path) -> None:
    with pytest.raises(
        InvalidDeclaration, match=r"unit of table 'visits' goes via 'patients\.patient'"
    ):
        read_declarations(
            written(tmp_path, HOSPITAL.replace('via = "patients.id"', 'via = "patients.patient"'))
        )


def test_reading_opens_neither_data_nor_ledger(tmp_path: Path) -> None:
    declared = read_declarations(written(tmp_path))
    assert declared.budget == sf.Budget(1, "1e-6")
    assert [each.name for each in tmp_path.iterdir()] == ["sfumato.toml"]


def test_the_budget_may_be_left_out_on_reopening(folder: Path) -> None:
    load(written(folder)).close()
    without = EXAMPLE.replace('[budget]\nepsilon = "1"\ndelta = "1e-6"\n', "")
    with load(written(folder, without)) as session:
        assert session.budget.limit == sf.Budget(1, "1e-6")


def test_paths_are_relative_to_the_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(folder)
    monkeypatch.chdir(folder.parent)
    load(path.relative_to(folder.parent)).close()
    assert (folder / "ledger.db").exists()


def test_an_address_is_no_path(folder: Path) -> None:
    path = written(folder, source='source = "postgresql://ada@db.example/clinic"\ntable = "people"')
    people = read_declarations(path).dataset.tables["people"]
    assert (people.source, people.table) == (Server("postgresql://ada@db.example/clinic"), "people")


def test_declarations_show_no_password(folder: Path) -> None:
    path = written(folder, ledger='ledger = "postgresql://ann:secret@db/ledger"')
    declared = read_declarations(path)
    assert declared.ledger == "postgresql://ann:secret@db/ledger"
    assert "secret" not in repr(declared) and "people" in repr(declared)


def test_an_object_of_a_store_is_no_path(folder: Path) -> None:
    path = written(folder, source='source = "s3://clinic/people.parquet"')
    people = read_declarations(path).dataset.tables["people"]
    assert people.place == "s3://clinic/people.parquet"


def test_the_path_of_an_sqlite_file_is_relative_to_the_file(folder: Path) -> None:
    path = written(folder, source='source = "sqlite:///people.db"\ntable = "people"')
    people = read_declarations(path).dataset.tables["people"]
    assert (people.source, people.table) == (folder / "people.db", "people")


WRONG = {
    "no dataset": ({"dataset": ""}, "dataset is missing"),
    "dataset a number": ({"dataset": "dataset = 5"}, "the file: dataset = 5"),
    "no ledger": ({"ledger": ""}, "ledger is missing"),
    "an unknown key": (
        {"dataset": 'dataset = "d"\ncolour = 1'},
        "the file: unknown key 'colour'",
    ),
    "an unknown budget key": ({"delta": "rho = 1"}, "budget: unknown key 'rho'"),
    "a budget without epsilon": ({"epsilon": ""}, "budget: epsilon is missing"),
    "an epsilon of zero": ({"epsilon": 'epsilon = "0"'}, "budget: epsilon = 0 is out of range"),
    "an epsilon NaN": ({"epsilon": "epsilon = nan"}, "budget: epsilon = nan"),
    "an epsilon that is a list": ({"epsilon": "epsilon = []"}, "budget: epsilon = a list"),
    "a delta of one": ({"delta": "delta = 1"}, "budget: delta = 1 is out of range"),
    "an unknown table key": (
        {"source": 'source = "adult.csv"\npath = "x"'},
        "tables.people: unknown key 'path'",
    ),
    "no source": ({"source": ""}, "source is missing"),
    "a source that is no text": ({"source": "source = 3"}, "tables.people: source = 3"),
    "an unknown unit key": (
        {"unit": 'unit = {column = "person_id", rows = 1}'},
        "tables.people.unit: unknown key 'rows'",
    ),
    "a unit without column": ({"unit": "unit = {max_rows = 1}"}, "tables.people.unit: column"),
    "a unit that is no table": (
        {"unit": 'unit = "person_id"'},
        "tables.people.unit is not a table",
    ),
    "a limit that is none": (
        {"unit": 'unit = {column = "person_id", max_rows = 0}'},
        "tables.people.unit: max_rows = 0",
    ),
    "a limit that is a text": (
        {"unit": 'unit = {column = "person_id", max_rows = "1"}'},
        "tables.people.unit: max_rows = '1'",
    ),
    "a size that is none": ({"source": 'source = "adult.csv"\nsize = 0'}, "tables.people: size=0"),
    "a column twice": (
        {"columns_sex": 'columns.AGE = {type = "text"}'},
        "tables.people: Two columns",
    ),
    "an unknown type": (
        {"columns_age": 'columns.age = {type = "float"}'},
        "tables.people.columns.age: type = 'float'",
    ),
    "no type": ({"columns_age": "columns.age = {lower = 1}"}, "tables.people.columns.age: type"),
    "no upper": (
        {"columns_age": 'columns.age = {type = "integer", lower = 1}'},
        "columns.age: upper is missing",
    ),
    "an unknown bound": (
        {"columns_age": 'columns.age = {type = "integer", lower = 1, upper = 2, step = 1}'},
        "columns.age: unknown key 'step'",
    ),
    "a bound that is a text": (
        {"columns_age": 'columns.age = {type = "integer", lower = "x", upper = 2}'},
        "columns.age: lower is not a finite number",
    ),
    "bounds reversed": (
        {"columns_age": 'columns.age = {type = "real", lower = 9, upper = 2}'},
        "columns.age: Bounds from 9 to 2",
    ),
    "an infinite bound": (
        {"columns_age": 'columns.age = {type = "real", lower = 0, upper = inf}'},
        "columns.age: upper",
    ),
    "a bound NaN": (
        {"columns_age": 'columns.age = {type = "real", lower = nan, upper = 1}'},
        "columns.age: lower",
    ),
    "no values": (
        {"columns_sex": 'columns.sex = {type = "category"}'},
        "columns.sex: values is missing",
    ),
    "a value twice": (
        {"columns_sex": 'columns.sex = {type = "category", values = ["a", "a"]}'},
        "columns.sex: A Category",
    ),
    "a column that is no table": ({"columns_age": "columns.age = 5"}, "columns.age is not a table"),
    "no date": (
        {"columns_age": 'columns.age = {type = "date", lower = "x", upper = "y"}'},
        "columns.age: Date",
    ),
    "an unknown relation": ({"dataset": 'dataset = "d"\nrelation = "swap"'}, "relation = 'swap'"),
    "a relation that is a list": ({"dataset": 'dataset = "d"\nrelation = []'}, "relation ="),
    "a version whose zero would be lost": (
        {"dataset": 'dataset = "d"\nversion = 1.10'},
        "version =",
    ),
    "no TOML": ({"dataset": "dataset = "}, "is not TOML"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_declaration_is_named(folder: Path, wrong: str) -> None:
    replaced, named = WRONG[wrong]
    with pytest.raises(InvalidConfig) as caught:
        load(written(folder, **replaced))
    assert named in caught.value.problem
    assert not (folder / "ledger.db").exists()


def test_what_the_data_refuses_keeps_its_error(folder: Path) -> None:
    with pytest.raises(InvalidDeclaration):
        load(written(folder, columns_sex='columns.wage = {type = "text"}'))
    assert not (folder / "ledger.db").exists()


def test_sections_that_are_missing_or_of_another_kind_are_named(folder: Path) -> None:
    for text, named in (
        ('dataset = "d"\nledger = "l"\n', "The file has no [tables]"),
        ('dataset = "d"\nledger = "l"\ntables = 3\n', "the file: tables = 3"),
        (
            'dataset = "d"\nledger = "l"\nbudget = 3\n[tables.t]\nsource = "adult.csv"\n',
            "the file: budget = 3",
        ),
        (
            'dataset = "d"\nledger = "l"\n[tables.t]\nsource = "adult.csv"\ncolumns = []\n',
            "tables.t.columns is not a table",
        ),
    ):
        with pytest.raises(InvalidConfig) as caught:
            load(written(folder, text))
        assert named in caught.value.problem


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "gb18030", "utf-16"])
def test_declarations_are_read_in_each_encoding_of_an_editor(tmp_path: Path, encoding: str) -> None:
    config = tmp_path / "sfumato.toml"
    config.write_bytes("# 数据来自门诊病区登记\nledgers = 1\n".encode(encoding))
    with pytest.raises(InvalidConfig, match="ledgers"):
        load(config)


def test_a_file_that_is_not_there_or_not_text_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfig, match="No file") as caught:
        load(tmp_path / "none.toml")
    assert "-c" in caught.value.remedy
    (tmp_path / "sfumato.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidConfig, match="line 1 is no text in UTF-8, GB18030 or UTF-16"):
        load(tmp_path / "sfumato.toml")
    with pytest.raises(InvalidConfig, match="cannot be read"):
        load(tmp_path)


def test_who_may_spend_and_whose_data_it_is_can_be_written(folder: Path) -> None:
    plain = read_declarations(written(folder))
    assert (plain.closed, plain.other_people) == (None, "")
    path = written(folder, EXAMPLE.replace('delta = "1e-6"', 'delta = "1e-6"\nclosed = true'))
    assert read_declarations(path).closed is True
    with load(path) as session:
        assert session._ledger.is_closed("acs-2019") is True
        before = session.verify().entries
        with pytest.raises(NotListed):
            session.query("SELECT COUNT(*) AS n FROM people", epsilon="0.1")
    with load(path) as session:
        assert session.verify().entries == before + 1, "the refusal; the list is said once"
    other = EXAMPLE.replace('"acs-2019"', '"fresh"')
    with pytest.raises(ContractMismatch, match="data of 'acs-2019' too"):
        load(written(folder, other))
    with load(written(folder, 'other_people = "last year\'s"\n' + other)) as session:
        assert session.budget.spent == "0"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('delta = "1e-6"', 'delta = "1e-6"\nclosed = "yes"'),
        ('dataset = "acs-2019"', 'dataset = "acs-2019"\nother_people = true'),
    ],
)
def test_a_wrong_word_about_who_may_spend_is_refused(folder: Path, old: str, new: str) -> None:
    with pytest.raises(InvalidConfig):
        read_declarations(written(folder, EXAMPLE.replace(old, new)))


def test_the_key_that_signs_lies_where_the_file_says(folder: Path) -> None:
    (folder / "keys").mkdir()
    path = written(folder, EXAMPLE.replace("[budget]", 'ledger_key = "keys/heads.pem"\n[budget]'))
    assert read_declarations(path).ledger_key == folder / "keys" / "heads.pem"
    with load(path) as session:
        session.query("SELECT COUNT(*) AS n FROM people", epsilon="0.1")
    assert (folder / "keys" / "heads.pem").is_file()
    assert not (folder / "ledger.db.key").exists()


@pytest.mark.parametrize("key", ["ledger_key", "prepared"])
@pytest.mark.parametrize("value", ['"postgresql://ada:hunter2@db/x"', '""', "3"])
def test_a_path_that_is_none_is_refused(folder: Path, key: str, value: str) -> None:
    with pytest.raises(InvalidConfig, match=key) as refused:
        read_declarations(
            written(folder, EXAMPLE.replace("[budget]", f"{key} = {value}\n[budget]"))
        )
    assert "hunter2" not in str(refused.value)


def test_a_ledger_that_is_open_has_its_key_already(folder: Path) -> None:
    ledger = Ledger.open(folder / "l.db")
    with pytest.raises(WrongUse, match="ledger_key, and a ledger that is open"):
        sf.connect({}, dataset="d", ledger=ledger, ledger_key=folder / "key")
    ledger.close()


def test_datasets_of_one_file_share_an_open_ledger(folder: Path) -> None:
    second = folder / "second.toml"
    written(folder)
    second.write_text('other_people = "another year"\n' + EXAMPLE.replace("acs-2019", "other"))
    ledger = Ledger.open(folder / "ledger.db")
    with load(folder / "sfumato.toml", ledger=ledger) as one, load(second, ledger=ledger) as two:
        one.query("SELECT COUNT(*) AS n FROM people", epsilon="0.5")
        two.query("SELECT COUNT(*) AS n FROM people", epsilon="0.25")
        # an open ledger serves others too: exact counts are refused
        with pytest.raises(WrongUse, match="own"):
            one.check_data()
    # it stays open, and the states of streams lie where they lie without it
    assert {each.scope.id: each.spent.epsilon for each in ledger.accounts()}[
        "acs-2019"
    ] == 5 * 10**11
    ledger.close()


def test_an_open_ledger_in_another_place_is_refused(folder: Path) -> None:
    ledger = Ledger.open(folder / "another.db")
    with pytest.raises(WrongUse, match="another is open"):
        load(written(folder), ledger=ledger)
    with pytest.raises(WrongUse, match="ledger="):
        load(written(folder), ledger="ledger.db")  # type: ignore[arg-type]
    ledger.close()


def test_an_open_ledger_leaves_the_states_of_streams_in_their_folder(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(folder)
    places: list[object] = []
    monkeypatch.setattr(
        "sfumato.config.load.connect", lambda *_, **named: places.append(named["states"])
    )
    ledger = Ledger.open(folder / "ledger.db")
    load(path, ledger=ledger)
    ledger.close()
    assert places == [Path(f"{folder / 'ledger.db'}.streams")]
