# SPDX-License-Identifier: Apache-2.0
"""Options that commands share."""

import csv
import io
import json
from pathlib import Path

import click
import pytest

from sfumato.cli.language import choose
from sfumato.cli.options import (
    as_json,
    asked,
    emit,
    priced,
    require_folders,
    require_outputs,
    seconds_to_wait,
    waits,
)
from sfumato.errors import WrongUse
from sfumato.ledger.waiting import WAIT
from sfumato.query.answer import Answer
from sfumato.query.price import OnAverage
from tests.contracts.people import session
from tests.contracts.shell import COUNT, Shell


@pytest.fixture(autouse=True)
def english() -> None:
    """A command that ran before in this process may have left its language."""
    choose("en")


@pytest.fixture(scope="module")
def answer(tmp_path_factory: pytest.TempPathFactory) -> Answer:
    """An answer with a key, a mean and, whatever the noise is, a ratio without an interval."""
    sql = "SELECT sex, AVG(age) AS m, SUM(age) / (0 * COUNT(*)) AS r FROM people WHERE age > 98 GROUP BY sex"
    with session(tmp_path_factory.mktemp("options")) as opened:
        return opened.query(sql, epsilon="0.01")


def test_a_priced_command_takes_each_price_as_the_text_that_was_written() -> None:
    seen: dict[str, object] = {}

    @click.command()
    @priced
    def command(**price: object) -> None:
        seen.update(price)

    command.main(["--epsilon", "0.10", "--max-epsilon", "1/3"], standalone_mode=False)
    assert seen == {
        "epsilon": "0.10",
        "rho": None,
        "delta": None,
        "error": None,
        "max_epsilon": "1/3",
        "clipped": False,
        "on_average": False,
        "interval": False,
    }


def test_an_error_is_asked_on_average_where_the_option_says_so() -> None:
    assert asked(on_average=False, clipped=False, interval=False, error="5", max_epsilon="1") == {
        "interval": False,
        "error": "5",
        "max_epsilon": "1",
    }
    assert asked(on_average=True, clipped=False, interval=True, error="5%", max_epsilon="1") == {
        "interval": True,
        "error": OnAverage("5%"),
        "max_epsilon": "1",
    }
    with pytest.raises(WrongUse, match="without an error"):
        asked(on_average=True, clipped=False, interval=False, error=None, epsilon="1")


def test_json_is_indented_and_keeps_every_letter() -> None:
    assert as_json({"a": "é"}) == '{\n  "a": "é"\n}'


@pytest.mark.parametrize("form", ["table", "json", "csv"])
def test_each_format_goes_to_the_terminal_or_to_a_file(
    answer: Answer, form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    emit(answer, form, None)
    printed = capsys.readouterr().out
    emit(answer, form, str(tmp_path / "out"))
    assert (tmp_path / "out").read_text(encoding="utf-8") == printed
    assert capsys.readouterr().out == ""


def test_csv_leaves_an_unbounded_interval_empty(
    answer: Answer, capsys: pytest.CaptureFixture[str]
) -> None:
    emit(answer, "csv", None)
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    # whether a cell of these small groups is marked depends on the noise
    shown = [name for name in rows[0] if name != "marks"]
    assert shown == ["sex", "m", "m_low", "m_high", "r", "r_low", "r_high"]
    for row, cells in zip(rows, answer.to_dicts(), strict=True):
        assert row["sex"] == cells["sex"]
        assert (row["r_low"], row["r_high"]) == ("", "")
        assert row["m"] == ("" if cells["m"] is None else str(cells["m"]))


def test_the_json_reads_back(answer: Answer, capsys: pytest.CaptureFixture[str]) -> None:
    emit(answer, "json", None)
    assert json.loads(capsys.readouterr().out)["rows"] == answer.rows


@pytest.mark.parametrize(
    "place", ["ledger.db", "ledger.db-wal", "./ledger.db", "sfumato.toml", "people.csv", "link.csv"]
)
@pytest.mark.parametrize(
    "command",
    [
        ("query", COUNT, "--epsilon", "1", "--output"),
        ("query", COUNT, "--epsilon", "1", "--save-plot"),
        ("ledger", "export", "--output"),
        ("ledger", "report", "--output"),
        ("ledger", "head", "--output"),
    ],
    ids=["query", "plot", "export", "report", "head"],
)
def test_no_output_replaces_what_is_declared(
    shell: Shell, command: tuple[str, ...], place: str
) -> None:
    shell.run("query", COUNT, "--epsilon", "1")
    (shell.folder / "link.csv").symlink_to("people.csv")
    kept = {
        name: (shell.folder / name).read_bytes()
        for name in ("ledger.db", "sfumato.toml", "people.csv")
    }
    ran = shell.run(*command, place)
    assert (ran.code, "is declared" in ran.err) == (2, True)
    assert {name: (shell.folder / name).read_bytes() for name in kept} == kept


SOURCE = 'dataset = "d"\nledger = "l.db"\nprepared = "layouts"\n[tables.t]\nsource = "{}"\n'


@pytest.mark.parametrize(
    "source", ["events", "events/*.parquet", "ev*/**/*.parquet", "events/../events/x.parquet"]
)
def test_no_output_goes_to_data_a_layout_or_what_lies_beside_a_ledger(
    tmp_path: Path, source: str
) -> None:
    for folder in ("events", "layouts", "elsewhere"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x.parquet").touch()
    (tmp_path / "hard.parquet").hardlink_to(tmp_path / "events" / "x.parquet")
    (tmp_path / "soft.json").symlink_to(tmp_path / "layouts" / "x.parquet")
    config = tmp_path / "sfumato.toml"
    config.write_text(SOURCE.format(source), encoding="utf-8")
    for name, what in {
        "events/x.parquet": "data of table 't'",
        "elsewhere/../events/x.parquet": "data of table 't'",
        "hard.parquet": "data of table 't'",
        "layouts/new.csv": "in the folder of prepared layouts",
        "soft.json": "in the folder of prepared layouts",
        "elsewhere/../sfumato.toml": "this file itself",
        "l.db": "the ledger",
        **{
            f"l.db{end}": f"the ledger's {end}"
            for end in (".key", ".head", ".lock", ".open", "-wal", "-shm")
        },
    }.items():
        with pytest.raises(WrongUse, match=rf"{name}' is declared in .*: it is {what}\."):
            require_outputs(str(config), str(tmp_path / name))
    require_outputs(
        str(config), None, str(tmp_path / "x.csv"), str(tmp_path / "elsewhere" / "y.parquet")
    )


@pytest.mark.parametrize("option", ["--output", "--save-plot"])
def test_an_output_has_a_name(shell: Shell, option: str) -> None:
    ran = shell.run("query", COUNT, "--epsilon", "1", option, "")
    assert (ran.code, ran.err.partition("\n")[0]) == (2, "WrongUse: An output without a name.")
    assert not (shell.folder / "ledger.db").exists()


def test_two_outputs_are_not_one_file(shell: Shell) -> None:
    ran = shell.run("query", COUNT, "--epsilon", "1", "--output", "x", "--save-plot", "./x")
    assert (ran.code, "'x' and './x' are one file" in ran.err) == (2, True)
    assert not (shell.folder / "ledger.db").exists()


def test_a_head_does_not_replace_its_key(shell: Shell) -> None:
    shell.run("query", COUNT, "--epsilon", "1")
    assert shell.run("ledger", "head", "--output", "a.head", "--key", "my.key").code == 0
    kept = (shell.folder / "my.key").read_bytes()
    ran = shell.run("ledger", "head", "--output", "./my.key", "--key", "my.key")
    assert (ran.code, "is the key that signs" in ran.err) == (2, True)
    assert (shell.folder / "my.key").read_bytes() == kept


@pytest.mark.parametrize("scheme", ["PostgreSQL", " postgresql", "postgresql+psycopg"])
def test_a_refused_output_quotes_no_password(scheme: str) -> None:
    with pytest.raises(WrongUse) as refused:
        require_folders(f"{scheme}://ada:secretpw@host/x")
    assert "secretpw" not in str(refused.value)


WRITERS = (
    "ledger allocate",
    "ledger freeze",
    "ledger thaw",
    "stream open",
    "stream advance",
    "query",
    "fit",
    "census",
    "budget",
)


@pytest.mark.parametrize("words", WRITERS)
def test_a_command_that_writes_to_the_ledger_says_how_long_it_waits(
    shell: Shell, words: str
) -> None:
    assert "--wait" in shell.run(*words.split(), "--help").out


@pytest.mark.parametrize("name", ["backup", "restore", "accept-server", "import"])
def test_a_command_that_waits_for_no_ledger_has_no_time_to_wait(shell: Shell, name: str) -> None:
    assert "--wait" not in shell.run("ledger", name, "--help").out


def test_a_command_waits_as_long_as_its_option_says() -> None:
    seconds = []

    @click.command()
    @waits
    def command() -> None:
        seconds.append(seconds_to_wait())

    command.main(["--wait", "0.5"], standalone_mode=False)
    command.main([], standalone_mode=False)
    assert [*seconds, seconds_to_wait()] == [0.5, WAIT, WAIT]
