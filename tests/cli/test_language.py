# SPDX-License-Identifier: Apache-2.0
"""Sentences in another language: whole lines only, never a value; and what the catalogue lacks."""

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import click
import pytest

from sfumato.cli import language
from sfumato.cli.language import Words, choose, localized, words_of
from sfumato.cli.lazy_group import LazyGroup
from sfumato.cli.main import run, sfumato
from sfumato.show.render import display_width, text_table
from tests.cli.census_folder import write_folder
from tests.cli.visible_texts import BLANK, sentences, shown_by_room, shown_texts
from tests.contracts.shell import COUNT, Shell

ZH = words_of("zh")
HAN = re.compile("[\u4e00-\u9fff]")
PLACE = re.compile(r"\{\d\*?\}")
COMPOSED = Path(__file__).with_name("composed_sentences.txt").read_text("utf-8").splitlines()


@pytest.fixture(autouse=True)
def english() -> Iterator[None]:
    yield
    choose(None)


def commands(group: click.Command) -> Iterator[click.Command]:
    """A command and all below it."""
    yield group
    if isinstance(group, click.Group):
        context = click.Context(group)
        for name in group.list_commands(context):
            inner = group.get_command(context, name)
            assert inner is not None
            yield from commands(inner)


def paragraphs(text: str | None) -> list[str]:
    return [" ".join(each.split()) for each in (text or "").split("\n\n") if each.strip()]


def test_every_help_text_has_a_translation() -> None:
    choose("en")
    missing = []
    for command in commands(sfumato):
        if isinstance(command, LazyGroup):
            texts = [text for listed in command.sections.values() for _, text in listed.values()]
            missing += [text for text in (*command.sections, *texts) if text not in ZH.sentences]
        texts = paragraphs(command.help)
        for option in command.params:
            if isinstance(option, click.Option):
                texts += paragraphs(option.help)
        missing += [text for text in texts if ZH.sentence(text) == text]
    assert sorted(set(missing)) == []


def test_help_is_shown_in_the_language(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = shell.run("--language", "zh", "query", "--help")
    assert "用法：sfumato query" in chosen.out and "选项" in chosen.out
    assert not re.search(r"\b(the|Show|Write)\b", chosen.out)
    assert "用法" not in shell.run("query", "--help").out
    monkeypatch.setenv(language.VARIABLE, "zh_CN.UTF-8")
    assert "试用与攻击" in shell.run("--help").out
    monkeypatch.setenv(language.VARIABLE, "fr")
    assert "Usage" in shell.run("--help").out
    assert shell.run("--language", "xx", "budget").code == 2


def test_the_tree_of_commands_stays_english_for_the_next_one() -> None:
    choose("zh")
    made = localized(sfumato)
    assert made.help != sfumato.help
    choose("en")
    assert localized(sfumato) is sfumato and not HAN.search(sfumato.help or "")


def test_an_answer_has_the_same_values_in_every_language(shell: Shell) -> None:
    choose(None)
    english = shell.run("query", COUNT, "--epsilon", "1").out
    chinese = shell.run("--language", "zh", "query", COUNT, "--epsilon", "1").out
    assert HAN.search(chinese) and not HAN.search(english)
    numbers = re.findall(r"-?[\d,]+\.?\d*", english.split("cost")[0])
    assert numbers == re.findall(r"-?[\d,]+\.?\d*", chinese.split("费用")[0])


@pytest.mark.parametrize("form", ["csv", "json"])
def test_what_machines_read_is_never_translated(shell: Shell, form: str) -> None:
    asked = ("query", COUNT, "--epsilon", "1", "--format", form)
    shell.run(*asked)
    assert shell.run(*asked).out == shell.run("--language", "zh", *asked).out


def test_refusals_are_named_and_translated(shell: Shell) -> None:
    ran = shell.run("--language", "zh", "query", "SELECT nothing", "--epsilon", "1")
    assert ran.code != 0
    lines = ran.err.splitlines()
    assert lines[0].split(":")[0] in ("UnknownName", "UnsupportedSql")
    assert any(line.startswith(("允许：", "怎么办：")) for line in lines)


def test_the_statement_in_place_of_a_refused_one_is_shown(shell: Shell) -> None:
    asked = ("query", "SELECT * FROM people", "--epsilon", "1")
    offer = "SELECT COUNT(*) AS n FROM people"
    assert shell.run(*asked).err.splitlines()[-1] == f"Instead: {offer}"
    assert shell.run("--language", "zh", *asked).err.splitlines()[-1] == f"可改为：{offer}"


def test_a_sentence_is_replaced_as_a_whole_or_not_at_all() -> None:
    words = Words({"wrote {1}": "已写入 {1}", "note: {1}": "注：{1*}", "all of {1}": "{1} 的全部"})
    assert (
        words.told("wrote a\n  note: all of b\nhe wrote a")
        == "已写入 a\n  注：b 的全部\nhe wrote a"
    )
    assert words.told("note: wrote {1}") == "注：已写入 {1}"
    assert words.sentence("wrote ") == "wrote "


def test_headers_keep_their_width_and_values_stay() -> None:
    words = Words({"x": "y"}, {"95% error": "95% 误差"})
    table = "column  95% error\n------  ---------\n     x  95% error"
    header, rule, row = words.told(table).split("\n")
    assert (header, rule, row) == ("column  95% 误差", "------  ---------", "     x  95% error")


def spans(line: str) -> list[tuple[int, int]]:
    """Where the cells of a line begin and end on a terminal."""
    ends, at = [], 0
    for gap, cell in re.findall(r"( *)(\S+(?: \S+)*)", line):
        at += len(gap)
        ends.append((at, at + display_width(cell)))
        at = ends[-1][1]
    return ends


def test_wide_tables_are_aligned_and_their_remarks_translated() -> None:
    words = Words(
        {"cannot be told": "无法确定", "north": "北"},
        {"95% interval": "95% 区间"},
        {"column  read": "列  已读"},
    )
    table = text_table(
        ["城市", "mean", "95% interval"],
        [["上海市", "cannot be told", "[0, 99]"], ["cannot be told", "3", "[1, 5]"]],
    )
    header, rule, first, second = words.told(table).split("\n")
    assert [start for start, _ in spans(header)] == [start for start, _ in spans(rule)]
    assert header.split() == ["城市", "mean", "95%", "区间"]
    assert [end for _, end in spans(first)] == [end for _, end in spans(rule)]
    # a value of the data that reads like a remark stays
    assert first.split() == ["上海市", "无法确定", "[0,", "99]"] and "cannot be told" in second
    assert words.told("column  read\n------  ----\n north     5") == (
        "列      已读\n------  ----\n north     5"
    )


CLINIC = """\
dataset = "clinic"
ledger = "ledger.db"
[budget]
epsilon = 1
[tables.visits]
source = "visits.csv"
unit = {column = "who", max_rows = 2, max_groups = 1}
columns.cost = {type = "integer", lower = 0, upper = 300, clip = [10, 200], missing = "N"}
columns."城市" = {type = "category", values = ["北京", "上海市", "广州"]}
columns.day = {type = "date", lower = "2024-01-01", upper = "2024-12-31"}
"""


def test_a_check_of_the_data_is_chinese_but_for_its_names_and_forms(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [f"{n % 4},{100 * n},{'北京' if n % 2 else '上海市'},31/12/2024" for n in range(12)]
    text = "\n".join(["who,cost,城市,day", *rows, ",N,x,"])
    (tmp_path / "visits.csv").write_text(text, encoding="utf-8")
    (tmp_path / "sfumato.toml").write_text(CLINIC, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert run(["--language", "zh", "check", "--data"]) == 2
    lines = capsys.readouterr().out.splitlines()
    declared = [line for line in lines if re.match(r"  (cost|城市|day): \w+\(", line)]
    assert len(declared) == 3 and declared[0].startswith("  cost: Integer(")
    table = lines.index(next(line for line in lines if line.startswith("------")))
    assert [start for start, _ in spans(lines[table - 1])] == [
        start for start, _ in spans(lines[table])
    ]
    told = [line for line in lines if line.strip() and line not in (*declared, *lines[table:][:4])]
    assert [line for line in told if not HAN.search(line)] == []


def test_a_census_and_its_plan_are_chinese(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(write_folder(tmp_path).parent)
    assert run(["--language", "zh", "census", "--plan"]) == 0
    assert run(["--language", "zh", "census", "--runs", "1", "--page", "page.html"]) == 0
    english = re.findall(r"^[a-z][a-z ,:]+\b.*$", capsys.readouterr().out, re.MULTILINE)
    # the rows of the tables begin with the names of levels
    assert {line.split()[0] for line in english} == {"county"}
    page = (tmp_path / "page.html").read_text("utf-8")
    assert '<html lang="zh">' in page and "<th>估计</th>" in page and "<th>sex</th>" in page
    paragraphs = re.findall(r"<p>(.*?)</p>", page)
    assert paragraphs and all(map(HAN.search, paragraphs))


def reworded(catalogue: Iterable[str]) -> list[str]:
    """The sentences of a catalogue that no text of the sources is, as a whole."""
    known = sentences()
    return [each for each in catalogue if " ".join(PLACE.sub(BLANK, each).split()) not in known]


def test_every_sentence_of_the_catalogue_is_said() -> None:
    """Sentences that are put together while the program runs are listed, and so are click's."""
    assert sorted(reworded(ZH.sentences)) == COMPOSED


def test_a_sentence_that_was_reworded_is_noticed() -> None:
    whole = [each for each in ZH.sentences if each not in COMPOSED]
    english = next(each for each in whole if len(each.split()) > 4)
    assert reworded([english, english.replace(" ", " indeed ", 1)]) == [
        english.replace(" ", " indeed ", 1)
    ]


def test_no_part_of_a_composed_sentence_is_dead() -> None:
    """Each fixed part of some length stands in texts of the sources, or is click's."""
    whole = "\n".join(sentences())
    theirs = (
        "Usage",
        "Options",
        "Error: ",
        "Try 'sfumato",
        "Show this",
        "Show the version",
        "Commands",
    )
    dead = []
    for english in COMPOSED:
        if not english.startswith(theirs):
            parts = [" ".join(part.split()) for part in PLACE.split(english)]
            dead += [english for part in parts if len(part) > 6 and not _stands(part, whole)]
    assert dead == []


def _stands(part: str, whole: str) -> bool:
    """Whether a part stands in the sources, as one text or divided into pieces of some length."""
    if part in whole:
        return True
    cuts = range(len(part) - 4, 3, -1)
    pieces = ((part[:cut].strip(), part[cut:].strip()) for cut in cuts)
    return any(first in whole and _stands(rest, whole) for first, rest in pieces)


def test_translations_have_the_places_of_the_sentence() -> None:
    for english, other in ZH.sentences.items():
        ours = sorted(each.strip("{*}") for each in PLACE.findall(english))
        theirs = sorted(each.strip("{*}") for each in PLACE.findall(other))
        assert ours == theirs, english
        assert HAN.search(other), english


KNOWN = frozenset(" ".join(PLACE.sub(BLANK, each).split()) for each in ZH.sentences)
# marks alone, and what is filled in
NO_WORDS = re.compile(rf"[\W\d_]*({BLANK}[\W\d_]*)*")


def is_translated(line: str, depth: int = 0) -> bool:
    """Whether no word of a line stays English, but for what is filled in and for examples.

    A line that a shorter sentence with places swallows ("{1} is not allowed.") is not.
    """
    if line in KNOWN or f"{BLANK} {line}." in KNOWN or NO_WORDS.fullmatch(line):
        return True
    for pattern, other in ZH._patterns if depth < 4 else ():
        match = pattern.fullmatch(line)
        if match is not None:
            return all(
                is_translated(part, depth + 1)
                if f"{{{name[1:]}*}}" in other
                else NO_WORDS.fullmatch(part)
                for name, part in match.groupdict().items()
            )
    return False


def english_sentences() -> list[str]:
    """The sentences that stay English by decision; a heading says which decision."""
    text = Path(__file__).with_name("english_sentences.txt").read_text("utf-8")
    return [line for line in text.splitlines() if line and not line.startswith("# ")]


def test_every_shown_sentence_is_translated_or_listed() -> None:
    """A new or a reworded sentence needs a line in ``zh.toml``, or in ``english_sentences.txt``."""
    shown = {line for lines in shown_by_room().values() for line in lines}
    english = {line for line in shown if not is_translated(line)}
    listed = set(english_sentences())
    assert (sorted(english - listed), sorted(listed - english)) == ([], [])


def test_sentences_that_stay_english_are_listed_once() -> None:
    listed = english_sentences()
    assert len(set(listed)) == len(listed)


NEW = """
def open_ledger(path, notes):
    if not path:
        raise LedgerBusy(
            f"The ledger {path} is in use by another process.",
            remedy="Close it, please." if path else "Wait a little.",
        )
    notes.append("It is quite new.")
    say(f"opened {path}\\nat once")
    raise TypeError("No such thing here.")
"""


def test_the_sentences_of_a_file_are_what_errors_notes_and_lines_show() -> None:
    shown = shown_texts(tuple(ast.walk(ast.parse(NEW))))
    assert shown == {
        f"The ledger {BLANK} is in use by another process.",
        "Close it, please.",
        "Wait a little.",
        "It is quite new.",
        f"opened {BLANK}",
        "at once",
    }


def test_a_sentence_is_translated_only_as_a_whole() -> None:
    sentence = f"The ledger {BLANK} is in use by another process."
    assert is_translated(sentence)
    assert not is_translated(sentence.replace("another", "some"))
    assert not is_translated("Close it, please.")
    # the frame is Chinese, and what it holds is not
    assert is_translated(f"note: {sentence}") and not is_translated("note: Close it, please.")
    # the pattern "{1} is not answered." swallows more than a name
    assert HAN.search(ZH.sentence("Who comes too late is not answered."))
    assert not is_translated("Who comes too late is not answered.")


def test_the_catalogue_is_in_the_package() -> None:
    assert (Path(language.__file__).parent / "zh.toml").is_file()
