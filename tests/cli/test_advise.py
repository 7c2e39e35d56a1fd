# SPDX-License-Identifier: Apache-2.0
"""``sfumato advise``: free, as a table, as JSON and as a picture."""

import json


def test_advice_is_a_table_and_charges_nothing(shell) -> None:
    before = shell.run("budget").out
    ran = shell.run("advise", "SELECT AVG(age) AS a FROM people", "--epsilon", "0.5")
    assert ran.code == 0
    assert "as asked" in ran.out and "age in [0, " in ran.out and "epsilon = 1" in ran.out
    assert shell.run("budget").out == before


def test_advice_as_json_and_picture(shell, tmp_path) -> None:
    picture = tmp_path / "advice.svg"
    ran = shell.run(
        "advise", "SELECT AVG(age) AS a FROM people", "--epsilon", "0.5", "--rows", "50",
        "--format", "json", "--save-plot", str(picture),
    )  # fmt: skip
    options = json.loads(ran.out)["options"]
    assert {option["rows"] for option in options} == {50}
    assert "<svg" in picture.read_text("utf-8")


def test_wrong_use_is_said(shell, tmp_path) -> None:
    ask = "SELECT AVG(age) AS a FROM people"
    assert shell.run("advise", ask).code == 2
    assert shell.run("advise", ask, "--epsilon", "1", "--rows", "0").code == 2
    missing = str(tmp_path / "none" / "a.svg")
    assert shell.run("advise", ask, "--epsilon", "1", "--save-plot", missing).code == 2
