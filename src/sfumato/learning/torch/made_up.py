# SPDX-License-Identifier: Apache-2.0
"""Runs a module and its loss on made-up rows before any charge, and checks for side effects.

Copies are tried. Whatever a copy shares with its original (globals, class attributes, closures)
could carry rows back to the caller, so the trial must not change it. What ``fingerprint`` does not
reach remains the responsibility of the owner, who provides the code.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn

from sfumato.errors import SfumatoError, WrongUse
from sfumato.learning.torch.choice import FAILURES, first_line
from sfumato.learning.torch.fingerprint import Parts, parts_by_name
from sfumato.learning.torch.recorded import Loss


@contextmanager
def trying(
    module: nn.Module,
    loss: Loss,
    allowed: str,
) -> Iterator[None]:
    """Context manager in which copies of a module and a loss are run on made-up rows; their
    failures raise WrongUse.

    Raises:
        WrongUse: they fail, and ``allowed`` says what does not; or they change what the caller's
            own reach.
    """
    try:
        before = parts_by_name(module=module, loss=loss)
        yield
        after = parts_by_name(module=module, loss=loss)
    except SfumatoError:
        raise
    except FAILURES as failure:
        raise WrongUse(
            "A module, or its loss, that fails on made-up rows.",
            allowed=allowed,
            remedy=f"It says: {type(failure).__name__}: {first_line(failure)}",
        ) from failure
    name = _first_change(before, after)
    if name is not None:
        raise WrongUse(
            f"Rows move {name}, which is shared with the caller.",
            allowed="a module and a loss that write into attributes of their own alone",
            remedy="Globals, attributes of a class and what a closure holds are not copied: keep "
            "it in an attribute of the module, whose copies stay behind.",
        )


def _first_change(
    before: Parts,
    after: Parts,
) -> str | None:
    """Returns the path of names to the first part that changed; None if none did."""
    changed = [name for name, parts in after.items() if before.get(name) != parts]
    changed += [name for name in before if name not in after]
    return changed[0] if changed else None
