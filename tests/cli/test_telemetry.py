# SPDX-License-Identifier: Apache-2.0
"""``sfumato telemetry``: from a declaration to a signed task to estimates."""

import json
import re
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization

from sfumato.collector import Folder
from sfumato.collector.folder import where
from sfumato.telemetry import SignedTask, report_task, verified
from tests.collector.batches import AGGREGATOR, KEY, batch, rows, sealed_batch
from tests.contracts.shell import Shell

PHONES = """\
dataset = "phones"
relation = "replace-one"
ledger = "ledger.db"
[budget]
epsilon = "10"
[telemetry.emoji]
question = "Which emoji?"
values = ["smile", "heart"]
epsilon = "2"
start = 2027-01-15T08:00:00Z
periods = 4
memory = 2
[telemetry.daily]
question = "Which emoji?"
values = ["smile", "heart"]
epsilon = "2"
start = 2027-01-15T08:00:00Z
periods = 2
min_batch = 10
[telemetry.hidden]
question = "Which emoji?"
values = ["smile", "heart"]
epsilon = "2"
start = 2027-01-15T08:00:00Z
periods = 2
min_batch = 1000
aggregator = "aggregator.pem"
[telemetry.typed]
question = "How much?"
lower = 0
upper = 100
step = 2
epsilon = "1"
oracle = "mean"
start = 2027-01-15T08:00:00Z
periods = 1
[telemetry.crash]
question = "Where?"
texts = true
epsilon = "20"
start = 2027-01-15T08:00:00Z
periods = 1
[telemetry.both]
question = "Which language, and how old?"
epsilon = "20"
start = 2027-01-15T08:00:00Z
periods = 1
[telemetry.both.attributes]
language = {values = ["en", "de, at"]}
years = {lower = 0, upper = 9}
[telemetry.wide]
question = "How wide?"
lower = 0
upper = 99
epsilon = "1"
oracle = "levels"
start = 2027-01-15T08:00:00Z
periods = 1
"""


@pytest.fixture
def phones(shell: Shell) -> Shell:
    """A dataset that has telemetry and no table."""
    shell.write("sfumato.toml", PHONES)
    private = KEY.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    shell.write("owner.key", private.decode())
    public = AGGREGATOR.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    shell.write("aggregator.pem", public.decode())
    return shell


SIGN = ("telemetry", "sign", "daily", "--key", "owner.key", "-o", "daily.task")


def signed(phones: Shell) -> SignedTask:
    assert phones.run(*SIGN).code == 0
    return verified((phones.folder / "daily.task").read_bytes(), [KEY.public_key()])


def test_what_is_signed_is_charged_once(phones: Shell) -> None:
    first = phones.run(*SIGN)
    assert "first report epsilon 2, for ever 4" in first.out and "up to 6" in first.out
    again = phones.run(*SIGN)
    assert again.code == 0 and "up to 6" in again.out
    assert signed(phones).task == report_task(
        "daily", "Which emoji?", ["smile", "heart"], epsilon=2, start=1_800_000_000, periods=2,
        min_batch=10,
    )  # fmt: skip


def test_the_hash_is_printed_and_written_for_the_clients(phones: Shell) -> None:
    published = ("--published", "published.json")
    ran = phones.run(*SIGN, *published)
    daily = signed(phones).task.hash.hex()
    assert f"hash {daily}\n" in ran.out and "wrote published.json" in ran.out
    path = phones.folder / "published.json"
    assert json.loads(path.read_text()) == [daily]
    emoji = ("telemetry", "sign", "emoji", "--key", "owner.key", "-o", "emoji.task", *published)
    for words in (emoji, (*SIGN, *published)):
        assert phones.run(*words).code == 0
    other = SignedTask.from_bytes((phones.folder / "emoji.task").read_bytes()).task.hash.hex()
    assert json.loads(path.read_text()) == sorted([daily, other])
    spent = phones.run("budget").out
    for body in ("{}", '["a1"]', "[1]", "no"):
        path.write_text(body)
        ran = phones.run(
            "telemetry", "sign", "hidden", "--key", "owner.key", "-o", "h.task", *published
        )
        assert ran.code == 2 and "no list of published tasks" in ran.err
    assert phones.run("budget").out == spent and path.read_text() == "no"


def test_a_task_that_the_budget_does_not_pay_is_not_signed(phones: Shell) -> None:
    phones.configure('epsilon = "10"', 'epsilon = "3.9"')
    ran = phones.run(*SIGN)
    assert ran.code != 0 and not (phones.folder / "daily.task").exists()


def test_a_relation_that_adds_and_removes_is_refused_with_the_remedy(phones: Shell) -> None:
    phones.configure('relation = "replace-one"\n', "")
    ran = phones.run(*SIGN)
    assert ran.code != 0 and "ReplaceOne" in ran.err


def test_estimates_are_of_what_the_collector_stored(phones: Shell) -> None:
    task = signed(phones).task
    with Folder(phones.folder / "reports") as folder:
        for period in (0, 1):
            reports = batch(task, 600, period=period)
            folder.append(task, period, rows(reports))
            # as a copy of another collector's file would be
            copy = where(phones.folder / "reports", task, period) / "growing-7.rows"
            copy.write_bytes(b"".join(reports[:50]))
    ran = phones.run("telemetry", "estimate", "daily.task", "reports")
    assert "1,200 reports, 100 duplicates" in ran.out
    (heart,) = re.findall(r"heart +([\d,]+)  \[", ran.out)
    # marked as in the chart: at 5% for the three values together
    marked = re.findall(r"\]  +(\S+) *(may be nobody's)?\n", ran.out)
    assert len(marked) == 3
    assert all((float(p_value) > 0.05 / 3) == bool(mark) for p_value, mark in marked)
    # 1,200 devices hold it; the standard error of an epsilon of 2 is 32
    assert 1_000 < int(heart.replace(",", "")) < 1_400
    one = phones.run(
        "telemetry", "estimate", "daily.task", "reports", "--period", "0", "--top", "1",
        "--save-plot", "daily.svg",
    )  # fmt: skip
    assert "heart" in (phones.folder / "daily.svg").read_text(encoding="utf-8")
    assert "600 reports, 50 duplicates" in one.out and "smile" not in one.out


def test_sealed_reports_need_the_key_of_the_aggregator(phones: Shell) -> None:
    phones.configure("min_batch = 1000", "min_batch = 100")
    assert phones.run("telemetry", "sign", "hidden", "--key", "owner.key", "-o", "h.task").code == 0
    task = SignedTask.from_bytes((phones.folder / "h.task").read_bytes()).task
    with Folder(phones.folder / "reports") as folder:
        # what was late lies in the next period
        folder.append(task, 1, rows(sealed_batch(task, 200, period=0)))
    estimate = ("telemetry", "estimate", "h.task", "reports", "--period", "0")
    assert "--key aggregator.key" in phones.run(*estimate).err
    assert "not sealed to this key" in phones.run(*estimate, "--key", "owner.key").err
    private = AGGREGATOR.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    phones.write("aggregator.key", private.decode())
    ran = phones.run(*estimate, "--key", "aggregator.key")
    assert ran.code == 0 and "200 reports, 0 duplicates" in ran.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("plan", "hidden", "--devices", "1000"), r"in shuffled batches epsilon 0\.\d+ .*for ever"),
        (("plan", "emoji", "--devices", "1000"), r"category \* .*\n.*for ever 4"),
        (("plan", "typed", "--devices", "10000"), r"mean: 95% error at most \+- 2\.0[23]"),
        (("plan", "wide", "--devices", "1000"), "telemetry simulate"),
        (("simulate", "emoji", "counts.csv"), r"heart +2,\d\d\d  \["),
        (("simulate", "crash", "counts.csv"), r"heart +2,[45]\d\d  \[.*smile +(9\d\d|1,0)"),
        (("simulate", "both", "both.csv"), r"language\n.*de, at .*years\n.* 3 "),
        (("plan", "both", "--devices", "1000"), r"language +category +500 "),
        (("plan", "crash", "--devices", "1000"), r"sketch \* "),
    ],
)
def test_planning_is_free(phones: Shell, words: tuple[str, ...], said: str) -> None:
    phones.write("counts.csv", "heart,2500\nsmile,1000\n")
    phones.write("both.csv", '"de, at",3,2500\n')
    ran = phones.run("telemetry", *words)
    assert ran.code == 0 and re.search(said, ran.out, re.DOTALL), ran
    assert not (phones.folder / "ledger.db").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("plan", "emoji", "--devices", "1000"), "1,000 devices"),
        (("simulate", "emoji", "counts.csv"), "whiskers: 95% interval"),
        (("simulate", "typed", "numbers.csv"), "mean of a device"),
        (("simulate", "wide", "numbers.csv"), "median"),
    ],
)
def test_what_is_shown_is_drawn(phones: Shell, words: tuple[str, ...], said: str) -> None:
    phones.write("counts.csv", "heart,2500\n")
    phones.write("numbers.csv", "20,9000\n")
    ran = phones.run("telemetry", *words, "--save-plot", "t.svg")
    assert ran.code == 0 and "wrote t.svg" in ran.out
    assert said in (phones.folder / "t.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("plan", "emoji"), "--devices"),
        (("plan", "wide", "--devices", "9", "--save-plot", "t.svg"), "simulate --save-plot"),
        (("plan", "emoji", "--devices", "9", "--save-plot", "sfumato.toml"), "this file itself"),
        (("simulate", "emoji", "counts.csv", "--save-plot", "no/t.svg"), "No folder"),
        (("estimate", "emoji.task", "reports", "--save-plot", "emoji.task"), "is read"),
        (("plan", "emoji", "--devices", "0"), "0 is not in the range"),
        (("plan", "nobody", "--devices", "9"), "No [telemetry.nobody]"),
        (("simulate", "emoji", "none.csv"), "cannot be read"),
        (("simulate", "emoji", "bad.csv"), "no value and count"),
        (("simulate", "typed", "counts.csv"), "no value and count"),
        (("simulate", "both", "counts.csv"), "en,3,60000"),
        (("plan", "crush", "--devices", "9"), "Did you mean crash"),
        (("simulate", "emoji", "moon.csv"), "'moon' was never a value"),
        (("sign", "emoji", "--key", "none.key", "-o", "x"), "openssl ecparam"),
        (("sign", "emoji", "--key", "bad.csv", "-o", "x"), "key"),
        (("sign", "emoji", "--key", "owner.key", "-o", "no/where"), "where"),
        (("estimate", "none.task", "reports"), "cannot be read"),
        (("estimate", "bad.csv", "reports"), "task"),
        (("estimate", "emoji.task", "reports"), "--period 0 to 3"),
        (("estimate", "emoji.task", "reports", "--period", "4"), "period"),
        (("estimate", "emoji.task", "reports", "--period", "0"), "0 reports"),
    ],
)
def test_slips_have_their_sentence(phones: Shell, words: tuple[str, ...], said: str) -> None:
    phones.write("counts.csv", "heart,2500\n")
    phones.write("bad.csv", "heart\n")
    phones.write("moon.csv", "moon,3\n")
    if "emoji.task" in words:
        phones.run("telemetry", "sign", "emoji", "--key", "owner.key", "-o", "emoji.task")
    ran = phones.run("telemetry", *words)
    assert ran.code != 0 and said in ran.out + ran.err, ran


def test_the_folder_of_a_task_is_not_of_another(phones: Shell, tmp_path: Path) -> None:
    task = signed(phones).task
    with Folder(tmp_path / "reports") as folder:
        folder.append(task, 0, rows(batch(task, 20, period=0)))
    phones.configure('question = "Which emoji?"', 'question = "Which?"')
    phones.run("telemetry", "sign", "daily", "--key", "owner.key", "-o", "other.task")
    ran = phones.run("telemetry", "estimate", "other.task", str(tmp_path / "reports"))
    assert "0 reports" in ran.out + ran.err
