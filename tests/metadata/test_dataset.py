# SPDX-License-Identifier: Apache-2.0
"""A dataset needs a name, a relation and plainly named tables."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import InvalidDeclaration
from sfumato.metadata import Dataset, Table
from sfumato.privacy import AddRemove, ReplaceOne

PEOPLE = {"people": Table("people.csv")}


@given(st.text(min_size=1).filter(str.strip), st.text(min_size=1))
@settings(deadline=None)
def test_a_dataset_keeps_what_it_was_given(name, version):
    dataset = Dataset(name, PEOPLE, ReplaceOne, version)
    assert (dataset.name, dataset.tables, dataset.relation, dataset.version) == (name, PEOPLE, ReplaceOne, version)


def test_a_dataset_is_add_remove_and_version_one_unless_told():
    dataset = Dataset("acs-2019", PEOPLE)
    assert (dataset.relation, dataset.version) == (AddRemove, "1")


@pytest.mark.parametrize("name", ["", "  ", None, 3, b"acs"])
def test_a_dataset_without_a_name_is_refused(name):
    with pytest.raises(InvalidDeclaration, match="dataset="):
        Dataset(name, PEOPLE)


@pytest.mark.parametrize("relation", ["add-remove", None, True])
def test_a_relation_that_is_none_is_refused(relation):
    with pytest.raises(InvalidDeclaration, match="relation="):
        Dataset("acs", PEOPLE, relation)


@pytest.mark.parametrize("tables", [{}, None, {1: Table("people.csv")}])
def test_a_dataset_without_a_table_is_refused(tables):
    with pytest.raises(InvalidDeclaration, match="without a named table"):
        Dataset("acs", tables)


@pytest.mark.parametrize("name", ["", "two words", "1st", "a.b", 'a"b', "a;b"])
def test_a_table_without_a_plain_name_is_refused(name):
    with pytest.raises(InvalidDeclaration, match="Table"):
        Dataset("acs", {name: Table("people.csv")})


@pytest.mark.parametrize("table", ["people.csv", None, Table], ids=repr)
def test_a_table_that_is_none_is_refused_by_name(table):
    with pytest.raises(InvalidDeclaration, match="'people'"):
        Dataset("acs", {"people": table})
