# SPDX-License-Identifier: Apache-2.0
"""The trusted modules are listed once, import each other only, and are counted."""

import ast

from tests.architecture.structure import (
    FILES,
    ROOT,
    TRUSTED,
    imports,
    module_name,
    sections,
)
from tests.architecture.tokens import tokens

# The targets are 60,000 and 40,000: CONTRIBUTING says what the difference is made of.
CAPS = {
    "proof core": 100_000,
    "proof options": 90_500,
    "runtime core": 93_200,
    "runtime options": 25_450,
}

PATHS = {module_name(path).removeprefix("sfumato."): path for path in FILES}


def imported(path):
    """The modules of sfumato that a file imports anywhere in it."""
    names = set()
    for node, _ in imports(path):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        else:
            # a name that a package exports is an import of the package
            members = {f"{node.module}.{alias.name}" for alias in node.names}
            modules = {name for name in members if name.removeprefix("sfumato.") in PATHS}
            names |= modules
            if modules != members:
                names.add(node.module)
    return {name.removeprefix("sfumato.") for name in names if name.startswith("sfumato.")}


def strangers(trusted):
    """What trusted modules import without its being trusted, as "module -> import"."""
    return {
        f"{name} -> {target}"
        for name in trusted
        for target in imported(PATHS[name])
        if target not in trusted
    }


def test_every_trusted_module_exists_and_is_listed_once():
    listed = [name for section in TRUSTED.values() for name in section]
    assert list(TRUSTED) == list(CAPS)
    assert sorted(set(listed)) == sorted(listed)
    assert not [name for name in listed if name not in PATHS]


def test_trusted_modules_import_trusted_modules_only():
    trusted = {name for section in TRUSTED.values() for name in section}
    assert not strangers(trusted)
    # a module that is missing from the list is noticed
    assert "query.charge -> query.curator" in strangers(trusted - {"query.curator"})


def test_the_proof_core_and_the_runtime_core_need_no_option():
    basic = {*TRUSTED["proof core"], *TRUSTED["runtime core"]}
    # which store a ledger opens, and who reads a table, follows from its address
    choosing = {"engines.remote", "engines.sources", "ledger.store.open"}
    # what a charge without a zCDP cost costs, follows from its event
    choosing |= {"accounting.order_price"}
    # how a text is split follows from its declaration
    choosing |= {"metadata.column"}
    assert {each.split(" -> ")[0] for each in strangers(basic)} == choosing


def test_trusted_sections_stay_within_their_tokens():
    counted = {
        section: sum(len(tokens(PATHS[name])) for name in names)
        for section, names in TRUSTED.items()
    }
    assert all(counted[section] <= cap for section, cap in CAPS.items()), counted


def test_the_list_is_read_by_sections():
    text = "# why\n[one]\na.b\n\nc\n[two]\nd\n"
    assert sections(text) == {"one": ("a.b", "c"), "two": ("d",)}


def test_contributing_names_the_list_and_its_caps():
    page = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    assert "src/sfumato/TRUSTED" in page
    assert all(f"{cap:,}" in page for cap in CAPS.values())
