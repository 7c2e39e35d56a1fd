# SPDX-License-Identifier: Apache-2.0
"""``sfumato predict``: the rows of a file with what a model says of them."""

import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as parquet
import pytest

from sfumato import learning as ln
from sfumato.cli.predict import said
from tests.cli.models_folder import write_models
from tests.contracts.shell import Shell


@pytest.fixture(autouse=True)
def folder(shell: Shell) -> None:
    write_models(shell)


def test_predictions_stand_beside_the_rows(shell: Shell) -> None:
    assert shell.run("fit", "bayes", "-o", "m.sfm").code == 0
    ran = shell.run("predict", "m.sfm", "new.csv")
    assert ran.code == 0 and ran.out.startswith('"age","city","pay","predicted","p_False","p_True"')
    assert len(ran.out.splitlines()) == 21
    ran = shell.run("predict", "m.sfm", "new.csv", "-o", "said.parquet")
    assert ran.code == 0 and "wrote said.parquet: 20 rows" in ran.out
    rows = parquet.read_table(shell.folder / "said.parquet")
    given = csv.read_csv(shell.folder / "new.csv")
    model = ln.load(shell.folder / "m.sfm")
    assert isinstance(model, ln.Model)
    # what the same model says of the numbers themselves
    assert rows["predicted"].to_pylist() == model.predict(given)
    assert rows["p_True"].to_pylist() == model.predict_proba(given)[:, 1].tolist()
    parquet.write_table(given, shell.folder / "new.parquet")
    again = shell.run("predict", "m.sfm", "new.parquet", "-o", "again.csv")
    assert again.code == 0
    other = csv.read_csv(shell.folder / "again.csv")
    assert other["p_True"].to_pylist() == rows["p_True"].to_pylist()


def test_values_that_the_model_does_not_know_are_told(shell: Shell) -> None:
    shell.run("fit", "bayes", "-o", "m.sfm")
    shell.write("odd.csv", "age,city\n40,nowhere\nforty,east\n,north\n")
    ran = shell.run("predict", "m.sfm", "odd.csv", "-o", "said.csv")
    assert ran.code == 0 and "1 of 3 values of 'age' are no value" in ran.out
    assert "1 of 3 values of 'city'" in ran.out and "of 'age' are missing" in ran.out


def test_clusters_and_components_are_columns_of_their_own(shell: Shell) -> None:
    shell.run("fit", "groups", "-o", "g.sfm")
    ran = shell.run("predict", "g.sfm", "new.csv", "-o", "said.csv")
    assert ran.code == 0
    assert set(csv.read_csv(shell.folder / "said.csv")["cluster"].to_pylist()) <= {0, 1}
    shell.configure('recipe = "KMeans"\nclusters = 2', 'recipe = "PCA"\ncomponents = 2')
    shell.run("fit", "groups", "-o", "p.sfm")
    model = ln.load(shell.folder / "p.sfm")
    given = pa.table({"age": [1, 2], "pay": [3.0, 4.0]})
    rows = said(model, given, given)
    assert rows.column_names == ["age", "pay", "component_1", "component_2"]
    assert rows["age"].to_pylist() == [1, 2]


def test_csv_for_excel_has_a_mark_and_no_formula(shell: Shell) -> None:
    assert shell.run("fit", "bayes", "-o", "m.sfm").code == 0
    given = csv.read_csv(shell.folder / "new.csv")
    rows = given.append_column("note", pa.array(["=1+1", *["plain"] * 19]))
    parquet.write_table(rows, shell.folder / "new.parquet")
    ran = shell.run("predict", "m.sfm", "new.parquet", "-o", "said.csv", "--excel")
    assert ran.code == 0 and "wrote said.csv: 20 rows" in ran.out
    content = (shell.folder / "said.csv").read_bytes()
    assert content.startswith(b"\xef\xbb\xbfage,city,pay,note,predicted,p_False,p_True\r\n")
    assert b",'=1+1," in content and content.count(b"\r\n") == 21
    refused = shell.run("predict", "m.sfm", "new.parquet", "-o", "said.parquet", "--excel")
    assert refused.code == 2 and "--excel with parquet" in refused.err


def test_a_csv_file_is_read_as_the_options_say(shell: Shell) -> None:
    shell.run("fit", "groups", "-o", "g.sfm")
    shell.write("plain.csv", "age,pay\n40,1.5\n41,20\n60,90.25\n")
    assert shell.run("predict", "g.sfm", "plain.csv", "-o", "said.csv").code == 0
    plain = csv.read_csv(shell.folder / "said.csv")
    text = "Bezahlung in €\nage\tpay\n40\t1,5\n41\t20\n60\t90,25\n"
    (shell.folder / "tabs.csv").write_bytes(text.encode("cp1252"))
    asked = ("predict", "g.sfm", "tabs.csv", "-o", "tabs.parquet", "--delimiter", "\\t")
    ran = shell.run(*asked, "--encoding", "cp1252", "--decimal", ",", "--header-row", "2")
    assert ran.code == 0, ran.err
    rows = parquet.read_table(shell.folder / "tabs.parquet")
    assert rows["cluster"].to_pylist() == plain["cluster"].to_pylist()
    # the rows are written as they were given
    assert rows["pay"].to_pylist() == ["1,5", "20", "90,25"] and "note" not in ran.out
    refused = shell.run("predict", "g.sfm", "tabs.parquet", "--delimiter", ";")
    assert refused.code == 2 and "no CSV file" in refused.err
    refused = shell.run("predict", "g.sfm", "tabs.csv")
    assert refused.code == 2 and "--encoding" in refused.err


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("nothing.sfm", "new.csv"), 2, "cannot be read"),
        (("new.csv", "new.csv"), 2, "no model"),
        (("m.sfm", "nothing.csv"), 2, "No file"),
        (("m.sfm", "m.sfm"), 2, "ends with"),
        (("m.sfm", "new.csv", "-o", "new.csv"), 2, "overwritten"),
        (("m.sfm", "new.csv", "-o", "said.xlsx"), 2, "no file of rows"),
        (("m.sfm", "named.csv"), 2, "already"),
        (("m.sfm", "short.csv"), 1, "no column 'city'"),
    ],
)
def test_what_cannot_be_predicted_is_refused(
    shell: Shell, arguments: tuple[str, ...], code: int, words: str
) -> None:
    shell.run("fit", "bayes", "-o", "m.sfm")
    shell.write("named.csv", "age,city,predicted\n40,east,x\n")
    shell.write("short.csv", "age\n40\n")
    ran = shell.run("predict", *arguments)
    assert ran.code == code and words in ran.err


def test_no_file_that_is_declared_is_overwritten(shell: Shell) -> None:
    shell.run("fit", "bayes", "-o", "m.sfm")
    data = shell.folder / "people.csv"
    before = data.read_bytes()
    ran = shell.run("predict", "m.sfm", "new.csv", "-o", "people.csv")
    assert ran.code == 2 and "data of table 'people'" in ran.err
    assert data.read_bytes() == before
    (shell.folder / "sfumato.toml").unlink()
    assert shell.run("predict", "m.sfm", "new.csv", "-o", "said.csv").code == 0
