# SPDX-License-Identifier: Apache-2.0
"""Files of studies and sites: what is read, and what is refused with what to write."""

from dataclasses import replace

import pytest

import sfumato as sf
from sfumato.errors import InvalidConfig
from sfumato.federated.declaration import differences, read_site, read_study
from tests.contracts.federation import NAMES, write_study


def test_a_study_is_named_by_its_bytes_and_its_roster_by_its_keys(tmp_path):
    path = write_study(tmp_path, more="overlap = 2")
    study = read_study(path)
    assert (study.name, study.sites) == ("trial", NAMES)
    terms = study.terms
    assert (terms.sites, terms.least, terms.colluders, terms.overlap) == (3, 3, 1, 2)
    assert float(terms.portion) == pytest.approx(2 / 3 / 4)
    path.write_text(path.read_text() + "# a remark\n")
    later = read_study(path).terms
    assert later.study != terms.study and later.roster == terms.roster
    assert list(study.dataset.tables["patients"].columns) == ["age", "sex", "dose", "responded"]


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('anne = "anne.pub"\n', "", "2 sites"),
        ("[sites]", "colluders = 0\n[sites]", "1 on"),
        ("[sites]", "colluders = 2\n[sites]", "least = 3 of 3 sites"),
        ("[sites]", "least = 4\n[sites]", "least = 4 of 3 sites"),
        ("[sites]", "overlap = 0\n[sites]", "1 on"),
        ("[sites]", 'epsilon = "1"\n[sites]', "unknown key 'epsilon'"),
        ("http://127.0.0.1", "http://10.0.0.1", "127.0.0.1"),
        ("http://127.0.0.1", "ftp://127.0.0.1", "https"),
        ("http://127.0.0.1", "https://me:secret@127.0.0.1", "https"),
        ('anne = "anne.pub"', 'anne = "northgate.pub"', "the same key"),
        ('anne = "anne.pub"', "anne = 3", "a PEM file"),
        ('anne = "anne.pub"', 'anne = "anne.pem"', "anne: The key is no public key"),
        ('anne = "anne.pub"', 'analyst = "anne.pub"', "none called analyst"),
        ("[tables.patients]\n", '[tables.patients]\nsource = "x.csv"\n', "a source"),
    ],
)
def test_a_study_that_protects_nobody_is_refused(tmp_path, old, new, told):
    path = write_study(tmp_path)
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(InvalidConfig) as refusal:
        read_study(path)
    assert told in str(refusal.value) and "secret" not in str(refusal.value)


def test_https_may_lead_anywhere(tmp_path):
    path = write_study(tmp_path)
    path.write_text(path.read_text().replace("http://127.0.0.1", "https://sum.example"))
    assert read_study(path).coordinator.startswith("https://sum.example:")


def test_a_site_reads_its_paths_beside_its_file(tmp_path):
    write_study(tmp_path, approve="by hand")
    site = read_site(tmp_path / "anne.toml")
    assert (site.site, site.by_hand) == ("anne", True)
    assert (site.study, site.folder) == (tmp_path / "study.toml", tmp_path / "anne.rounds")
    wrong = tmp_path / "wrong.toml"
    wrong.write_text((tmp_path / "anne.toml").read_text().replace("by hand", "by nobody"))
    with pytest.raises(InvalidConfig):
        read_site(wrong)


def test_each_declaration_that_differs_is_named(tmp_path):
    study = read_study(write_study(tmp_path)).dataset
    assert differences(study, study) == ()
    table = study.tables["patients"]

    def here(**fields):
        return replace(study, tables={"patients": replace(table, **fields)})

    columns = dict(table.columns)
    fewer = {name: kind for name, kind in columns.items() if name != "dose"}
    assert differences(study, here(columns=fewer)) == ("patients.dose: not declared here",)
    wider = columns | {"age": sf.Integer(0, 120)}
    (told,) = differences(study, here(columns=wider))
    assert told.startswith("patients.age: ") and "120" in told
    (told,) = differences(study, here(unit=sf.Unit("id", max_rows=2)))
    assert told.startswith("patients.unit: ")
    assert differences(study, replace(study, tables={"others": table})) == (
        "patients: no such table here",
    )
    (told,) = differences(study, replace(study, relation=sf.ReplaceOne))
    assert told.startswith("relation: ")
    # more of its own is no difference
    assert differences(study, replace(study, tables={**study.tables, "more": table})) == ()
