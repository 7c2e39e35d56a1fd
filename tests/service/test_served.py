# SPDX-License-Identifier: Apache-2.0
"""The open datasets: closed to others, one ledger for each file."""

from pathlib import Path

import pytest

from sfumato.config.load import read_declarations
from sfumato.errors import InvalidConfig, NotListed, WrongUse
from sfumato.ledger.account_path import Scope
from sfumato.privacy.budget import Budget
from sfumato.service.served import Datasets, check
from tests.contracts.clinic import COUNT, RUNS, TOML, written


def test_a_served_dataset_is_closed(tmp_path: Path) -> None:
    datasets = Datasets([written(tmp_path)], 1)
    (served,) = datasets
    with pytest.raises(NotListed):
        served.session_of(Scope("clinic", "study", "ann")).query(COUNT, epsilon="0.1")
    served.ledger.allocate("clinic", Budget(1), purpose="study", analyst="ann", reason="test")
    served.session_of(Scope("clinic", "study", "ann")).query(COUNT, epsilon="0.1")
    with pytest.raises(WrongUse):
        served.session.check_data()
    datasets.close()


def test_a_file_that_opens_its_dataset_to_all_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, TOML.replace('delta = "1e-6"', 'delta = "1e-6"\nclosed = false'))
    with pytest.raises(InvalidConfig, match="closed = false"):
        check([path])
    with pytest.raises(InvalidConfig, match="closed = false"):
        Datasets([path], 1)
    assert not (tmp_path / "ledger.db").exists()


def test_datasets_of_one_file_share_its_ledger(tmp_path: Path) -> None:
    first, second = written(tmp_path), tmp_path / "second.toml"
    second.write_text('other_people = "another year"\n' + TOML.replace("clinic", "other"))
    datasets = Datasets([first, second], 1)
    assert len(datasets.ledgers) == 1
    assert {each.name for each in datasets} == {"clinic", "other"} == set(check([first, second]))
    datasets.close()


def test_declarations_are_shown_without_sources(tmp_path: Path) -> None:
    datasets = Datasets([written(tmp_path, RUNS)], 1)
    (served,) = datasets
    shown = served.to_json()
    assert shown["runs"]["synopses"] == ["ages"] and len(shown["runs"]) == 5
    assert shown["tables"] == [
        {
            "name": "people",
            "size": 40,
            "columns": [
                {"name": "age", "declared": "Integer(0, 99)"},
                {"name": "sex", "declared": "Category('F', 'M')"},
            ],
        }
    ]
    assert "people.csv" not in str(shown) and str(tmp_path) not in str(shown)
    datasets.close()


def test_the_declarations_of_a_dataset_are_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[Path] = []
    real = read_declarations
    for place in ("sfumato.service.served", "sfumato.config.load"):
        monkeypatch.setattr(
            f"{place}.read_declarations", lambda path: (read.append(path), real(path))[1]
        )
    Datasets([written(tmp_path)], 1).close()
    assert len(read) == 1
