# SPDX-License-Identifier: Apache-2.0
"""No name of Python that is in stored bytes can be renamed unnoticed."""

from enum import Enum

import numpy as np
import pytest

from sfumato.learning.examples import Residuals
from sfumato.mechanisms.additive import AdditiveMechanism
from sfumato.metadata.column import Column
from sfumato.noise import DiscreteLaplace, RoundedGaussian
from sfumato.plan.scalar import Compare, Comparison
from sfumato.plan.show import form
from sfumato.privacy.distance import Norm
from tests.architecture.structure import FILES, module_name
from tests.stored import names, parts, questions
from tests.stored.names import Name, pinned_names, places_of, renamed
from tests.stored.world import World

NAMES = pinned_names()
OTHERS = parts.pinned()
# A question's form, by the names of the question and of the text.
PLACES = {
    f"{name}: {place}": (dataset, name, place)
    for dataset in questions.QUESTIONS
    for name, stored in parts.read(f"forms/{dataset}.json").items()
    for place in stored["texts"]
}
FORMS = names.forms()


def made(world: World, place: str) -> str:
    """A stored text as it is made now."""
    if place in PLACES:
        dataset, name, text = PLACES[place]
        return world.asked(dataset, name).stored.makers[text]()
    return world.makers[place]()


def written(world: World, place: str) -> str:
    """A stored text, or why it cannot be made any more."""
    try:
        return made(world, place)
    except (LookupError, TypeError) as failure:
        return repr(failure)


def noticed(world: World, name: Name) -> bool:
    """Whether a pinned text is another one once a name is renamed."""
    texts = OTHERS if name.text else FORMS
    for place in places_of(name, texts):
        assert made(world, place) == texts[place]
        with renamed(name):
            if written(world, place) != texts[place]:
                return True
    return False


@pytest.mark.parametrize("module", sorted({name.owner.__module__ for name in NAMES}))
def test_no_stored_name_can_be_renamed_unnoticed(stored_world: World, module: str) -> None:
    own = [name for name in NAMES if name.owner.__module__ == module]
    assert [str(name) for name in own if not noticed(stored_world, name)] == []


@pytest.mark.parametrize(
    ("place", "name"),
    [
        ("form of rounded", Name("field", RoundedGaussian, "_hat")),
        ("form of distances", Name("member", Norm, "L1")),
        ("form of laplace", Name("class", RoundedGaussian, "RoundedGaussian")),
    ],
)
def test_what_is_not_stored_is_renamed_unnoticed(
    stored_world: World, place: str, name: Name
) -> None:
    """So that what is noticed above is not noticed of any name."""
    with renamed(name):
        assert made(stored_world, place) == OTHERS[place]


def test_what_is_renamed_in_memory_is_as_before_afterwards(stored_world: World) -> None:
    before = made(stored_world, "form of truncated")
    for name in NAMES:
        if name.owner.__name__ == "Truncated":
            with renamed(name):
                assert made(stored_world, "form of truncated") != before
            assert made(stored_world, "form of truncated") == before


def test_a_class_that_a_form_may_hold_is_in_a_pinned_form() -> None:
    stored = {name.owner for name in NAMES if not name.text}
    # ``show`` writes the names of columns itself, and arrays of weights have no form
    never = {Column, Residuals}
    assert names.reachable(stored) - stored - never == set()
    with pytest.raises(TypeError, match="no canonical form"):
        form(Residuals(np.zeros(1, np.int64), logistic=True))


def test_every_field_and_value_of_a_stored_class_is_in_a_pinned_form() -> None:
    pinned = {(name.owner, name.name) for name in NAMES if not name.text}
    for kind in {name.owner for name in NAMES if not name.text}:
        members = [each.name for each in kind] if issubclass(kind, Enum) else names.compared(kind)
        assert {(kind, member) for member in members} <= pinned


def test_a_class_that_no_pin_has_is_found_by_the_annotations() -> None:
    assert DiscreteLaplace in names.reachable([AdditiveMechanism])
    assert Comparison in names.reachable([Compare])


# The modules that make a form: each has a pinned question, or a text of ``parts``.
MAKERS = {
    "engines": {"prepared"},
    "graph": {"task"},
    "learning": {
        "choose",
        "decision_tree",
        "forest",
        "kmeans",
        "model",
        "naive_bayes",
        "near",
        "outcomes",
        "pca",
        "ridge",
        "run",
        "score",
        "torch.outcomes",
        "torch.stream",
        "torch.training",
        "tree",
        "tree_outcomes",
        "trees",
    },
    "mining": {"itemsets_task", "keys_task", "means_task"},
    "query": {"asker", "marginals", "release", "table", "ticks"},
    "synopsis": {"document", "geography.task", "grid_task", "measurement", "tick_task"},
    "synthetic": {"relational_task", "task"},
}


def test_whoever_makes_a_form_has_a_pin() -> None:
    found: dict[str, set[str]] = {}
    for path in FILES:
        if "\nfrom sfumato.plan.show import " in path.read_text(encoding="utf-8"):
            room, _, name = module_name(path).removeprefix("sfumato.").partition(".")
            found.setdefault(room, set()).add(name)
    assert found == MAKERS
