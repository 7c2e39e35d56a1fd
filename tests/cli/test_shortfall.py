# SPDX-License-Identifier: Apache-2.0
"""A preview says if the account cannot pay, exactly where the fit would be refused."""

import pytest

from tests.cli.models_folder import write_models
from tests.contracts.shell import Shell


@pytest.mark.parametrize(
    ("cost", "code"),
    [
        (("--epsilon", "10", "--delta", "1e-7"), 0),
        (("--epsilon", "60", "--delta", "1e-7"), 1),
        (("--epsilon", "1", "--delta", "5e-6"), 0),
        (("--epsilon", "1", "--delta", "6e-6"), 1),
        (("--rho", "1"), 0),
        (("--rho", "100"), 1),
    ],
)
def test_it_agrees_with_the_fit(shell: Shell, cost: tuple[str, ...], code: int) -> None:
    write_models(shell)
    ran = shell.run("fit", "illness", "--preview", *cost)
    assert ran.code == 0
    assert ("the account cannot pay for it: left are epsilon" in ran.out) == bool(code)
    assert shell.run("fit", "illness", *cost).code == code
