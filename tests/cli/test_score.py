# SPDX-License-Identifier: Apache-2.0
"""``sfumato score``: what Python counts, at the same cost; refusals are free."""

import pytest

from tests.cli.models_folder import write_models
from tests.contracts.shell import Shell

DATA = "SELECT age, city, ill FROM people"


@pytest.fixture(autouse=True)
def folder(shell: Shell) -> None:
    write_models(shell)


def test_a_model_of_classes_and_one_of_a_number_are_scored(shell: Shell) -> None:
    shell.run("fit", "bayes", "-o", "m.sfm")
    ask = ("score", "m.sfm", DATA, "--label", "ill", "--epsilon", "1")
    ran = shell.run(*ask)
    assert ran.code == 0 and ran.out.startswith("accuracy ")
    assert "cost: epsilon = 1)" in ran.out and "spent     epsilon 3 of 10" in ran.out
    # the same again is the same answer, free
    assert shell.run(*ask).out == ran.out
    shell.configure('recipe = "NaiveBayes"\nbins = 4', 'recipe = "Ridge"')
    shell.configure(
        '"SELECT age, city, ill FROM people"\nlabel = "ill"\nepsilon = "2"\npublic',
        '"SELECT age, city, pay FROM people"\nlabel = "pay"\nepsilon = "1"\ndelta = "1e-6"\npublic',
    )
    assert shell.run("fit", "bayes", "-o", "r.sfm").code == 0
    ask = ("score", "r.sfm", "SELECT age, city, pay FROM people", "--label", "pay")
    ran = shell.run(*ask, "--within", "10", "--epsilon", "0.1")
    assert (ran.code, ran.err) == (0, "") and ran.out.startswith("accuracy ")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--label", "ill"), "exactly one of epsilon="),
        (("--label", "city", "--epsilon", "1"), "The label has other classes"),
        (("--label", "ill", "--epsilon", "1", "--within", "3"), "model of a number"),
        (("--label", "ill", "--rho", "1", "--within", "3"), "--epsilon"),
        (("--epsilon", "1"), "--label"),
    ],
)
def test_refusals_cost_nothing(shell: Shell, more: tuple[str, ...], said: str) -> None:
    shell.run("fit", "bayes", "-o", "m.sfm")
    ran = shell.run("score", "m.sfm", DATA, *more)
    assert ran.code == 2 and said in ran.err
    assert "epsilon 2 spent" in shell.run("budget").out


def test_clusters_predict_no_column(shell: Shell) -> None:
    shell.run("fit", "groups", "-o", "g.sfm")
    ran = shell.run("score", "g.sfm", DATA, "--label", "ill", "--epsilon", "1")
    assert ran.code == 2 and "'g.sfm' predicts no column" in ran.err
