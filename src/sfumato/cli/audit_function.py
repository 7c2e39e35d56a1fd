# SPDX-License-Identifier: Apache-2.0
"""``sfumato audit --function noise.py:noisy``: tests a user's own mechanism by runs."""

import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sfumato.audit.attack import Audit, audit
from sfumato.errors import WrongUse
from sfumato.exact.rational import positive, to_fraction
from sfumato.privacy import ApproxDP, PureDP


def audit_function(
    place: str,
    inputs: tuple[str, str],
    claim: PureDP | ApproxDP,
    runs: int,
    progress: Callable[[int, int], None],
) -> Audit:
    """Runs a function of a Python file on two inputs, and tests its claim.

    ``place`` is FILE:NAME; the inputs are JSON; ``progress`` is called with the number of runs done
    and the number of all runs.

    Raises:
        WrongUse: no such file or function; inputs that are not JSON.
    """
    function = _function(place)
    given = (_input(inputs[0]), _input(inputs[1]))
    return audit(function, given, runs, claim=claim, progress=progress)


def claim_of(epsilon: str | None, delta: str | None) -> PureDP | ApproxDP:
    """Returns the guarantee that the options claim."""
    if epsilon is None:
        raise WrongUse(
            "--function without a claim.", allowed="--epsilon 1, and --delta 1e-2 beside it"
        )
    if delta is None or to_fraction("delta", delta) == 0:
        return PureDP(positive("epsilon", epsilon))
    return ApproxDP(positive("epsilon", epsilon), to_fraction("delta", delta))


def _function(place: str) -> Callable[[Any], Any]:
    """Imports the function FILE:NAME."""
    path, _, name = place.rpartition(":")
    if not path or not Path(path).is_file():
        raise WrongUse(
            f"--function {place!r}: no such file.",
            allowed="noise.py:noisy, a file and a function in it",
        )
    spec = importlib.util.spec_from_file_location("sfumato_audited", path)
    if spec is None or spec.loader is None:
        raise WrongUse(f"--function {place!r}: not a Python file.", allowed="noise.py:noisy")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    function = getattr(module, name, None)
    if not callable(getattr(function, "release", function)):
        public = [member for member in vars(module) if not member.startswith("_")]
        names = [member for member in public if callable(getattr(module, member))]
        raise WrongUse(
            f"The file has no function {name!r}.",
            allowed=", ".join(names) or "a function of one input",
        )
    return function  # type: ignore[return-value]


def _input(text: str) -> Any:
    """Returns an input, parsed from JSON."""
    try:
        return json.loads(text)
    except ValueError:
        raise WrongUse(
            f"--input {text!r} is not JSON.", allowed="0, 1.5, [1, 2, 3], '\"text\"'"
        ) from None
