# SPDX-License-Identifier: Apache-2.0
"""[collector] and [shuffler]: what they declare; refusals of the command are in test_collect."""

from pathlib import Path

import pytest

from sfumato.config.collector import read_door
from sfumato.errors import InvalidConfig, TaskRefused
from sfumato.telemetry import SignedTask, report_task, signed_task
from tests.collector.batches import KEY, asked
from tests.collector.processes import declare


def test_a_door_has_its_folder_tasks_and_address(tmp_path: Path) -> None:
    port = declare(tmp_path, asked())
    door = read_door(str(tmp_path / "telemetry.toml"), "collector")
    assert door.place == tmp_path / "reports" and door.tasks == (asked_again(tmp_path),)
    assert (door.host, door.port, str(door)) == ("127.0.0.1", port, f"http://127.0.0.1:{port}")


def test_a_door_may_keep_reports_on_a_server_and_a_shuffler_may_not(tmp_path: Path) -> None:
    declare(tmp_path, asked(), 'postgres = "postgresql://ann:secret@db/telemetry"')
    path = tmp_path / "telemetry.toml"
    door = read_door(str(path), "collector")
    assert door.place == "postgresql://ann:secret@db/telemetry" and "secret" not in repr(door)
    text = path.read_text().replace("[collector]", "[shuffler]")
    path.write_text(f'{text}collector = "http://c"\n', encoding="utf-8")
    with pytest.raises(InvalidConfig, match=r"where \[shuffler\] keeps"):
        read_door(str(path), "shuffler")


def asked_again(folder: Path) -> SignedTask:
    return SignedTask.from_bytes((folder / "emoji.task").read_bytes())


def test_keys_that_a_section_needs_besides_must_be_there(tmp_path: Path) -> None:
    declare(tmp_path, asked())
    path = tmp_path / "telemetry.toml"
    path.write_text(path.read_text().replace("[collector]", "[shuffler]"), encoding="utf-8")
    with pytest.raises(InvalidConfig, match="shuffler: collector is missing"):
        read_door(str(path), "shuffler")
    path.write_text(path.read_text() + 'collector = "http://c"\n', encoding="utf-8")
    assert read_door(str(path), "shuffler").form["collector"] == "http://c"
    with pytest.raises(InvalidConfig, match=r"no \[collector\]"):
        read_door(str(path), "collector")


@pytest.mark.parametrize("address", ["3", '"collector.example"', '"file:///etc/hosts"'])
def test_a_collector_that_is_no_web_address_is_refused(tmp_path: Path, address: str) -> None:
    declare(tmp_path, asked())
    path = tmp_path / "telemetry.toml"
    text = path.read_text().replace("[collector]", "[shuffler]")
    path.write_text(f"{text}collector = {address}\n", encoding="utf-8")
    with pytest.raises(InvalidConfig, match="shuffler: collector = ") as refused:
        read_door(str(path), "shuffler")
    assert refused.value.remedy == 'collector = "https://collector.example"'


def test_a_task_that_the_owner_has_not_signed_is_refused(tmp_path: Path) -> None:
    declare(tmp_path, asked())
    other = report_task("emoji", "?", ["a"], epsilon=1, start=0, periods=1)
    body = signed_task(other, KEY).to_bytes()
    (tmp_path / "emoji.task").write_bytes(body.replace(b'\\"?\\"', b'\\"!\\"'))
    with pytest.raises(TaskRefused):
        read_door(str(tmp_path / "telemetry.toml"), "collector")
