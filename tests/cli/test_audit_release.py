# SPDX-License-Identifier: Apache-2.0
"""``sfumato audit release``: what tables of counts give away, with and without the combinations."""

import json

import pytest

from tests.contracts.shell import Shell

BY_BOTH = "sex,age,n\nf,old,1\nm,old,4\nm,young,\n"
BY_SEX = "sex,n\nf,1\nm,6\n"


def write(shell: Shell, **files: str) -> list[str]:
    for name, text in files.items():
        (shell.folder / f"{name}.csv").write_text(text)
    return [f"{name}.csv" for name in files]


def test_counts_that_follow_and_nothing_else(shell: Shell) -> None:
    files = write(shell, both=BY_BOTH, sex=BY_SEX)
    ran = shell.run("audit", "release", *files, "--suppressed", "1,9")
    assert ran.code == 0
    assert "Of 7 persons the whole combination follows: sex, age." in ran.out
    # the suppressed count is 6 - 4; combinations are shown on request alone
    assert "1 of them are alone in theirs." in ran.out and "young" not in ran.out
    shown = shell.run("audit", "release", *files, "--suppressed", "1,9", "--show")
    assert "young" in shown.out


def test_json(shell: Shell) -> None:
    files = write(shell, both=BY_BOTH, sex=BY_SEX)
    arguments = ("audit", "release", *files, "--suppressed", "1,9", "--format", "json")
    plain = json.loads(shell.run(*arguments).out)
    assert plain == {
        "columns": ["sex", "age"],
        "determined": 7,
        "unique": 1,
        "complete": True,
        "reason": "",
    }
    cells = json.loads(shell.run(*arguments, "--show").out)["cells"]
    assert {"values": ["m", "young"], "count": 2} in cells and len(cells) == 3


def test_noise_coarser_values_and_rounding(shell: Shell) -> None:
    files = write(shell, a="sex,n\nf,-1\nm,6\n")
    assert "Nothing follows: a count is negative" in shell.run("audit", "release", *files).out
    write(shell, groups="column,group,value\nage,child,8\nage,child,9\n")
    files = write(shell, fine="age,n\n8,1\n9,2\n", coarse="age,sex,n\nchild,f,3\n")
    ran = shell.run("audit", "release", *files, "--groups", "groups.csv")
    assert "Of 3 persons" in ran.out
    assert "Of 0 persons" in shell.run("audit", "release", "fine.csv", "--rounded", "5").out


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        (BY_BOTH, []),
        (BY_SEX, ["--suppressed", "1"]),
        (BY_SEX, ["--count", "number"]),
        ("sex,n\nf,1,2\n", []),
        ("sex,n\nf\n", []),
        (BY_SEX, ["--groups", "given.csv"]),
        (BY_SEX, ["absent.csv"]),
        (BY_SEX, ["--rounded", "1"]),
    ],
)
def test_bad_input_is_refused(shell: Shell, text: str, arguments: list[str]) -> None:
    files = write(shell, given=text)
    ran = shell.run("audit", "release", *files, *arguments)
    assert ran.code in (1, 2) and "Error" not in ran.out


def test_the_group_without_a_command_is_the_table_of_mechanisms(shell: Shell) -> None:
    ran = shell.run("audit", "--mechanism", "laplace", "--runs", "0")
    assert ran.code == 0 and "1 of 1 are proved to hold" in ran.out
    assert "release" in shell.run("audit", "--help").out
