# SPDX-License-Identifier: Apache-2.0
"""[telemetry.NAME]: the task that it declares, and what it refuses."""

from pathlib import Path

import pytest

from sfumato.config.telemetry import read_task
from sfumato.errors import InvalidConfig, SfumatoError
from sfumato.metadata.column import Integer, Real
from sfumato.telemetry import Texts, Words, oracles, report_task

HEAD = '[telemetry.t]\nquestion = "Which?"\nepsilon = "1"\nstart = 2027-01-15T08:00:00Z\n'


def written(folder: Path, text: str) -> str:
    path = folder / "sfumato.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("text", "domain", "fields"),
    [
        ('values = ["a", "b"]\nperiods = 2\nmemory = 2', ["a", "b"], {"periods": 2, "memory": 2}),
        ("lower = 0\nupper = 9\nperiods = 1", Integer(0, 9), {"periods": 1}),
        (
            'lower = 0\nupper = 9\nstep = "0.5"\nperiods = 1\nreport_bytes = 2',
            Real(0, 9, step="0.5"),
            {"periods": 1, "report_bytes": 2},
        ),
    ],
)
def test_the_task_is_that_of_python(tmp_path, text, domain, fields):
    expected = report_task("t", "Which?", domain, epsilon=1, start=1_800_000_000, **fields)
    assert read_task(written(tmp_path, HEAD + text), "t") == expected


@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("bit", oracles.bit),
        ("category", oracles.category),
        ("hashed", oracles.hashed),
        ("levels", oracles.levels),
        ("mean", oracles.mean),
        ("projective", oracles.projective),
        ("unary", oracles.unary),
    ],
)
def test_an_oracle_is_that_of_its_name(tmp_path, name, made):
    text = f'{HEAD}lower = 0\nupper = 30\nperiods = 1\noracle = "{name}"'
    assert read_task(written(tmp_path, text), "t").oracle == made(31, 1)


BOTH = """\
attributes.lang = {values = ["en", "de"]}
attributes.years = {lower = 0, upper = 9, oracle = "bit"}
"""


def attributes(*parts):
    return oracles.attributes(parts)


@pytest.mark.parametrize(
    ("text", "domain", "made"),
    [
        ("texts = true", Texts(), oracles.sketch(1)),
        ('letters = "ab"\nlength = 5', Words("ab", 5), oracles.prefixes(3, 5, 1)),
        (
            'letters = "ab"\nlength = 5\noracle = {kind = "fragments", whole = 0.5}',
            Words("ab", 5),
            oracles.fragments(3, 5, 1, whole="0.5"),
        ),
        (
            BOTH,
            {"lang": ["en", "de"], "years": Integer(0, 9)},
            attributes(oracles.category(3, 1), oracles.bit(10, 1)),
        ),
    ],
)
def test_texts_words_and_attributes_are_those_of_python(tmp_path, text, domain, made):
    expected = report_task("t", "Which?", domain, oracle=made, start=1_800_000_000, periods=1)
    found = read_task(written(tmp_path, HEAD + "periods = 1\n" + text), "t")
    assert found == expected


def test_rappor_has_no_epsilon_and_a_task_an_end(tmp_path):
    head = HEAD.replace('epsilon = "1"\n', "")
    text = f'{head}texts = true\noracle = "rappor"\nperiods = 3\nmemory = 3\n'
    found = read_task(written(tmp_path, text + "expires = 2027-01-15T08:01:00Z"), "t")
    assert found.oracle == oracles.rappor()
    assert (found.start, found.expires) == (1_800_000_000, 1_800_000_060)


def test_an_oracle_of_listed_values_counts_the_other(tmp_path):
    text = f'{HEAD}values = ["a", "b"]\nperiods = 1\noracle = "unary"'
    assert read_task(written(tmp_path, text), "t").oracle.values == 3


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", r"no \[telemetry\]"),
        ("[telemetry]", r"\[telemetry\.NAME\]"),
        ("[telemetry.s]", r"No \[telemetry\.t\]"),
        (HEAD, "periods is missing"),
        (HEAD + "periods = 1\nvalue = 3", "unknown key 'value'"),
        (HEAD + "periodes = 1\nvalues = []", "Did you mean periods"),
        (HEAD.replace(".t]", ".emoji]") + "periods = 1", r"No \[telemetry\.t\]"),
        (HEAD + "periods = 1\ntexts = 1", "The values of telemetry.t"),
        (HEAD + "periods = 1\ntexts = true\nlower = 1", "The values of telemetry.t"),
        (HEAD + 'periods = 1\nletters = "ab"', "The values of telemetry.t"),
        (HEAD + "periods = 1\nletters = 3\nlength = 2", "The values of telemetry.t"),
        (HEAD + 'periods = 1\nletters = "ab"\nlength = "2"', "length"),
        (HEAD + 'periods = 1\nletters = "aa"\nlength = 2', "letters"),
        (HEAD + "periods = 1\nattributes = 3", "The values of telemetry.t"),
        (HEAD + "periods = 1\nattributes = {a = 3}", "attributes.a is not a table"),
        (HEAD + "periods = 1\nattributes = {a = {valus = []}}", "Did you mean values"),
        (HEAD + "periods = 1\nattributes = {a = {lower = 0}}", "The values of telemetry.t.attrib"),
        (HEAD + "periods = 1\nattributes = {a = {lower = 0, upper = 1}}", "attribute"),
        (HEAD + 'periods = 1\noracle = "bit"\nattributes = {}', "of several attributes"),
        (
            HEAD + 'periods = 1\nattributes = {a = {lower = 0, upper = 9, oracle = "mean"}, '
            "b = {lower = 0, upper = 1}}",
            "the oracle 'mean' of an attribute",
        ),
        (HEAD + "periods = 1\nattributes = {}", "attribute"),
        (HEAD + 'periods = 1\nvalues = ["a"]\nexpires = 2027-01-15', "expires is no time"),
        (HEAD + "periods = 1", "values"),
        (HEAD + 'periods = 1\nvalues = "ab"', "values"),
        (HEAD + 'periods = 1\nvalues = ["a"]\nlower = 0', "values"),
        (HEAD + 'periods = 1\nvalues = ["a"]\noracle = "best"', "the oracle 'best'"),
        (HEAD.replace("T08:00:00Z", "") + 'periods = 1\nvalues = ["a"]', "start"),
        (HEAD.replace("00Z", "00") + 'periods = 1\nvalues = ["a"]', "start"),
        (HEAD.replace('"1"', '"much"') + 'periods = 1\nvalues = ["a"]', "epsilon"),
        (HEAD.replace('"1"', "0") + 'periods = 1\nvalues = ["a"]', "epsilon"),
        (HEAD + 'periods = 0\nvalues = ["a"]', "periods"),
        (HEAD + 'periods = 1\nvalues = ["a", "a"]', "comes twice"),
        (HEAD + 'periods = 1\nvalues = ["a"]\nother = 3', "The value 3"),
        (HEAD + "periods = 1\nvalues = [1, 2]", "1"),
        (HEAD + 'periods = 1\nlower = "x"\nupper = 2', "x"),
        (HEAD.replace('"Which?"', "3") + 'periods = 1\nvalues = ["a"]', "question"),
        (HEAD + 'periods = "1"\nvalues = ["a"]', "periods"),
        (HEAD + 'periods = 1\nvalues = ["a"]\nmemory = "1"', "memory"),
        (HEAD + 'periods = 1\nvalues = ["a"]\nreport_bytes = "1"', "report_bytes"),
        ("telemetry = 3", "telemetry"),
        ("[telemetry]\nt = 3", "telemetry"),
    ],
)
def test_what_is_not_declared_is_refused(tmp_path, text, words):
    with pytest.raises(SfumatoError, match=words):
        read_task(written(tmp_path, text), "t")


def test_a_file_that_is_not_there_is_refused():
    with pytest.raises(InvalidConfig, match="No file"):
        read_task("nowhere.toml", "t")
