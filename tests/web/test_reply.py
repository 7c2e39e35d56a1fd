# SPDX-License-Identifier: Apache-2.0
"""Files of answers: their bytes, and no formula in a sheet."""

import io
import json
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

import sfumato as sf
from sfumato.config.released import Form, Result
from sfumato.errors import WrongUse
from sfumato.query.answer import Answer
from sfumato.web.reply import (
    as_arrow,
    as_csv,
    as_json,
    as_parquet,
    as_svg,
    cells_writer,
    no_formula,
    released,
    rows_as_csv,
    rows_as_parquet,
    run_writer,
    stored,
)


@pytest.fixture
def answer(tmp_path: Path) -> Answer:
    frame = pyarrow.table({"job": ["=1+1", "@x", "clerk", "-2"] * 20, "x": [1, 2, 3, 4] * 20})
    columns = {"job": sf.Category("=1+1", "@x", "clerk", "-2"), "x": sf.Integer(-9, 9)}
    with sf.connect({"t": sf.Table(frame, columns=columns)}, dataset="d", budget=sf.Budget(10**6),
                    ledger=tmp_path / "l.db") as session:  # fmt: skip
        return session.query('SELECT job, SUM(x - 9) AS "=evil" FROM t GROUP BY job', epsilon=10**5)


def test_a_sheet_takes_no_text_for_a_formula(answer: Answer) -> None:
    lines = as_csv(answer).body.decode().splitlines()
    assert lines[0] == "job,'=evil,=evil_low,=evil_high".replace(",=", ",'=")
    assert [line.split(",")[0] for line in lines[1:]] == ["'=1+1", "'@x", "clerk", "'-2"]
    # a number may be negative
    assert lines[1].split(",")[1] == "-160"
    assert no_formula("") == ""


def test_files_have_the_numbers_of_the_answer(answer: Answer) -> None:
    arrow = pyarrow.ipc.open_stream(as_arrow(answer).body).read_all()
    parquet = pyarrow.parquet.read_table(io.BytesIO(as_parquet(answer).body))
    assert arrow.to_pylist() == answer.to_dicts()
    assert parquet.column("=evil").to_pylist() == answer["=evil"]


def test_a_chart_is_that_of_the_answer(answer: Answer) -> None:
    reply = as_svg(answer)
    assert (reply.type, reply.body.decode()) == ("image/svg+xml", answer.plot("=evil").svg)
    assert reply.body.count(b"<svg") == 1 and b"clerk" in reply.body


def test_a_stored_answer_is_its_bytes(answer: Answer) -> None:
    reply = stored(answer)
    assert reply.body is answer.bytes
    assert dict(reply.headers) == {"Sfumato-Charge": answer.charge_id, "Sfumato-Recalled": "false"}
    assert as_json({"a": "é"}, 201).body == '{"a": "é"}'.encode()


def test_rows_are_written_without_formulas() -> None:
    rows = pyarrow.table({"=a": ["=1", None], "list": [[1, 2], [3]], "n": [-1, 2]})
    assert rows_as_csv(rows).body == b"'=a,list,n\n'=1,\"[1, 2]\",-1\n,[3],2\n"
    stored_rows = pyarrow.parquet.read_table(io.BytesIO(rows_as_parquet(rows).body))
    assert stored_rows.equals(rows)


def test_what_mining_finds_is_written_without_formulas() -> None:
    rows = [{"items": "=1", "n": -2}, {"items": "clerk, cook", "n": 7}]
    sheet = run_writer("mining", "csv")(Result(json.dumps({"rows": rows}).encode(), ("a",)))
    assert sheet.body == b'items,n\n\'=1,-2\n"clerk, cook",7\n' and sheet.form is Form.CSV
    assert run_writer("mining", "csv")(Result(b'{"rows": []}', ("a",))).body == b""
    own = Result(b"x", ("a",))
    assert run_writer("models", "")(own) is own
    for section, form in (("models", "csv"), ("mining", "json")):
        with pytest.raises(WrongUse, match="form"):
            run_writer(section, form)


def test_marginals_have_no_form_of_another_name() -> None:
    assert [cells_writer(form)[0] for form in ("json", "arrow")] == [Form.JSON, Form.ARROW]
    with pytest.raises(WrongUse, match="form"):
        cells_writer("zip")


def test_a_result_names_its_charges() -> None:
    reply = released(Result(b"PK", ("a", "b"), form=Form.ZIP))
    assert reply.type == "application/zip"
    assert list(reply.headers) == [("Sfumato-Charge", "a, b")]
    assert ("Sfumato-Recalled", "true") in released(Result(b"", ("a",), recalled=True)).headers
