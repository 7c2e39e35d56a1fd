# SPDX-License-Identifier: Apache-2.0
"""``sfumato pictures``: what is read, what is NULL and counted, and what is refused."""

import os
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import sfumato as sf
from sfumato import mining as mn
from sfumato.cli import pictures
from tests.contracts.require import missing
from tests.contracts.shell import Shell

IMAGE: Any = import_module("PIL.Image") if find_spec("PIL") else None
GREY = np.arange(0, 240, 10, dtype=np.uint8).reshape(4, 6)


@pytest.fixture(autouse=True)
def pillow() -> None:
    """Pillow, without which no picture can be written."""
    if IMAGE is None:
        missing("pillow", "no Pillow here: pip install 'sfumato[pictures]'")


def rows(path: Path) -> dict[str, Any]:
    """The picture of each file."""
    table = parquet.read_table(path)
    assert table.column_names == ["file", "folder", "picture"]
    return {row["file"]: row["picture"] for row in table.to_pylist()}


@pytest.fixture
def scans(shell: Shell, tmp_path: Path) -> Path:
    """A folder of pictures, and of what is none."""
    folder = shell.folder / "scans"
    (folder / "eye" / "deep").mkdir(parents=True)
    IMAGE.fromarray(GREY).save(folder / "eye" / "a.png")
    IMAGE.fromarray(GREY).save(folder / "eye" / "deep" / "ö.bmp")
    colour = np.zeros((4, 6, 3), np.uint8)
    colour[..., 1] = 200
    IMAGE.fromarray(colour).save(folder / "green.png")
    IMAGE.fromarray(GREY.astype(np.uint16) * 256 + 7).save(folder / "deep.png")
    frames = [IMAGE.fromarray(GREY + each) for each in range(3)]
    frames[0].save(folder / "moving.gif", save_all=True, append_images=frames[1:])
    (folder / "notes.txt").write_text("no picture")
    (folder / "empty.png").write_bytes(b"")
    whole = (folder / "eye" / "a.png").read_bytes()
    (folder / "cut.png").write_bytes(whole[:60])
    (folder / ".hidden.png").write_bytes(whole)
    return folder


def test_pictures_are_rows_and_what_is_none_is_null_and_counted(shell: Shell, scans: Path) -> None:
    ran = shell.run("pictures", "scans", "--size", "4x6", "-o", "scans.parquet")
    assert ran.code == 0 and ran.out == (
        "wrote scans.parquet: 8 rows\nnote: NULL in 3 rows: no picture that can be read\n"
        "note: NULL in 1 rows: an animated picture\n"
    )
    found = rows(shell.folder / "scans.parquet")
    flat = GREY.ravel().tolist()
    assert found["eye/a.png"] == flat and found["eye/deep/ö.bmp"] == flat
    assert found["deep.png"] == flat
    # 0.587 of green: ITU-R BT.601
    assert found["green.png"] == [round(200 * 0.587)] * 24
    nulls = {name for name, picture in found.items() if picture is None}
    assert nulls == {"moving.gif", "notes.txt", "empty.png", "cut.png"}
    table = parquet.read_table(shell.folder / "scans.parquet").to_pylist()
    folders = {row["file"]: row["folder"] for row in table}
    assert folders["eye/deep/ö.bmp"] == "eye/deep" and folders["green.png"] == ""


def test_a_picture_is_scaled_and_turned_upright(shell: Shell, tmp_path: Path) -> None:
    halves = np.zeros((40, 20), np.uint8)
    halves[:20] = 255
    turned = IMAGE.fromarray(halves)
    exif = turned.getexif()
    exif[0x0112] = 3
    turned.save(tmp_path / "down.png", exif=exif)
    IMAGE.fromarray(halves).save(tmp_path / "up.png")
    up = pictures.read_picture(IMAGE, tmp_path / "up.png", 4, 2)
    down = pictures.read_picture(IMAGE, tmp_path / "down.png", 4, 2)
    assert up.reshape(4, 2)[0].tolist() == [255, 255] and up.reshape(4, 2)[3].tolist() == [0, 0]
    assert down.tolist() == up.tolist()[::-1]


def test_numbers_of_32_bits_and_half_a_file_are_no_picture(tmp_path: Path) -> None:
    """Converted, all but the darkest would be white; of half a file the rest would be grey."""
    IMAGE.fromarray(GREY.astype(np.int32) * 256).save(tmp_path / "deep.tiff")
    IMAGE.fromarray(GREY.astype(np.float32) / 255).save(tmp_path / "real.tiff")
    noise = np.random.default_rng(0).integers(0, 256, (60, 80)).astype(np.uint8)
    IMAGE.fromarray(noise).save(tmp_path / "whole.jpg")
    whole = (tmp_path / "whole.jpg").read_bytes()
    (tmp_path / "half.jpg").write_bytes(whole[: len(whole) // 2])
    for name in ("deep.tiff", "real.tiff", "half.jpg"):
        read = pictures.read_picture(IMAGE, tmp_path / name, 4, 6)
        assert read is pictures.Unread.UNREADABLE, name
    # a single pixel is a picture, and all of what it is scaled to
    IMAGE.fromarray(GREY[3:, 5:]).save(tmp_path / "one.png")
    assert pictures.read_picture(IMAGE, tmp_path / "one.png", 2, 2).tolist() == [230] * 4


def test_a_bomb_is_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    IMAGE.fromarray(GREY).save(tmp_path / "a.png")
    monkeypatch.setattr(pictures, "_MOST_PIXELS", 23)
    assert pictures.read_picture(IMAGE, tmp_path / "a.png", 2, 2) is pictures.Unread.LARGE
    monkeypatch.setattr(pictures, "_MOST_PIXELS", 24)
    assert len(pictures.read_picture(IMAGE, tmp_path / "a.png", 2, 2)) == 4
    # Pillow's own limit says the same
    monkeypatch.setattr(IMAGE, "MAX_IMAGE_PIXELS", 5)
    assert pictures.read_picture(IMAGE, tmp_path / "a.png", 2, 2) is pictures.Unread.LARGE


def test_what_was_written_is_an_array(shell: Shell, scans: Path, tmp_path: Path) -> None:
    shell.run("pictures", "scans", "--size", "2x3", "-o", "scans.parquet")
    # many copies of each row: the mean is then that of the pictures
    table = parquet.read_table(shell.folder / "scans.parquet")
    many = pa.concat_tables([table] * 500)
    columns = {"picture": sf.Array((2, 3), 0, 255), "folder": sf.Category("eye", "eye/deep")}
    with sf.connect(
        {"t": sf.Table(many, columns=columns)},
        dataset="scans",
        budget=sf.Budget(100, "1e-6"),
        ledger=tmp_path / "l.db",
    ) as session:
        found: Any = mn.mine(
            session, mn.Means("picture", by="folder"), "SELECT picture, folder FROM t", rho=5
        )
    expected = np.array(rows(shell.folder / "scans.parquet")["eye/a.png"]).reshape(2, 3)
    assert np.abs(found["eye"] - expected).max() < 5


def test_names_that_are_no_text_and_no_files_are_no_error(shell: Shell) -> None:
    folder = shell.folder / "scans"
    folder.mkdir()
    ran = shell.run("pictures", "scans", "--size", "1x1", "-o", "scans/all.parquet")
    assert ran.code == 0 and rows(folder / "all.parquet") == {}
    (folder / os.fsdecode(b"\xff.png")).write_bytes(b"")
    ran = shell.run("pictures", "scans", "--size", "1x1", "-o", "scans/all.parquet")
    assert ran.code == 0 and rows(folder / "all.parquet") == {"\ufffd.png": None}


@pytest.mark.parametrize("size", ["28", "0x3", "28X28", "2000x2000", "-1x1", "28x28x3"])
def test_other_sizes_are_refused(shell: Shell, size: str) -> None:
    (shell.folder / "scans").mkdir()
    ran = shell.run("pictures", "scans", f"--size={size}", "-o", "scans.parquet")
    assert ran.code != 0 and "28x28" in ran.err
    assert not (shell.folder / "scans.parquet").exists()


def test_other_outputs_and_no_folder_are_refused(shell: Shell) -> None:
    (shell.folder / "scans").mkdir()
    assert ".parquet" in shell.run("pictures", "scans", "--size", "1x1", "-o", "a.csv").err
    assert shell.run("pictures", "nowhere", "--size", "1x1", "-o", "a.parquet").code != 0


def test_the_extra_is_named_where_it_is_missing(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    (shell.folder / "scans").mkdir()
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    ran = shell.run("pictures", "scans", "--size", "1x1", "-o", "a.parquet")
    assert ran.code != 0 and "sfumato[pictures]" in ran.err
    assert not (shell.folder / "a.parquet").exists()
