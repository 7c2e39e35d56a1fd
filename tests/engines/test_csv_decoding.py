# SPDX-License-Identifier: Apache-2.0
"""The UTF-8 copy of a CSV file: what does not decode is missing, and moves no field."""

import codecs
import csv
import io
import itertools
import stat

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.engines import csv_decoding
from sfumato.engines.csv_decoding import UNDECODED, Decoded, decoded, without_undecoded
from sfumato.metadata.file_text import ENCODINGS
from tests.contracts.effort import examples

# Of each encoding: a byte sequence that has no meaning, and how it is written beside ASCII.
DAMAGED = {
    "utf-8": [b"\xff", b"\xc3", b"\xe4\xbd", b"\xed\xa0\x80"],
    "gbk": [b"\xff", b"\x80", b"\xd5"],
    "gb18030": [b"\xff", b"\x80", b"\x81\x30", b"\xff9", b"\x81\x30\x81"],
    "cp932": [b"\xff", b"\x81", b"\xfc"],
    "euc_jp": [b"\xff", b"\x8f", b"\x8f\xa1", b"\x8e"],
    "cp949": [b"\xff", b"\x80", b"\xc7"],
    "big5": [b"\xff", b"\x80", b"\xa4"],
    "cp1252": [b"\x81", b"\x9d"],
}
WORDS = {
    "big5": "台北",
    "cp950": "台北€",
    "shift_jis": "東京〜",
    "cp932": "東京①",
    "euc_jp": "東京",
    "cp949": "똠방각하",
    "euc_kr": "서울",
    "latin-1": "Zoë",
    "cp1250": "Łódź",
    "cp1251": "Москва",
    "cp1252": "5 €",
    "koi8-r": "Москва",
}
ROWS = "name,n\nAnn,1\n张三,2\n"


def text_of(folder, data, encoding):
    """The text of the copy of some bytes, and the number of places that do not decode."""
    path = folder / "data.csv"
    path.write_bytes(data)
    copy = decoded(path, encoding, folder)
    text = copy.path.read_bytes().decode("utf-8")
    if copy.path != path:
        copy.path.unlink()
    return text, copy.lost


@pytest.mark.parametrize("encoding", ["utf-8-sig", *ENCODINGS])
def test_text_in_each_encoding_is_the_text_that_was_written(tmp_path, encoding):
    text = f"name,n\n{WORDS.get(encoding, '张三')},1\n"
    declared = encoding.removesuffix("-sig")
    assert text_of(tmp_path, text.encode(encoding), declared) in (
        (text, 0),
        (f"\ufeff{text}", 0),
    )


@pytest.mark.parametrize("order", ["le", "be"])
def test_the_mark_of_utf16_states_the_order_of_bytes(tmp_path, order):
    mark = codecs.BOM_UTF16_LE if order == "le" else codecs.BOM_UTF16_BE
    text = f"{ROWS}𠀀,3\n"
    assert text_of(tmp_path, mark + text.encode(f"utf-16-{order}"), "utf-16") == (text, 0)
    with pytest.raises(UnicodeError, match="byte order mark"):
        text_of(tmp_path, text.encode(f"utf-16-{order}"), "utf-16")


def test_utf8_is_read_where_it_is(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text(ROWS, encoding="utf-8")
    assert decoded(path, "utf-8", tmp_path) == Decoded(path)
    path.write_text(f"{ROWS}{UNDECODED},1\n", encoding="utf-8")
    assert decoded(path, "utf-8", tmp_path).lost == 1


def test_a_copy_is_its_owners_alone_and_has_a_name_of_its_own(tmp_path):
    path = tmp_path / "data.csv"
    path.write_bytes(ROWS.encode("gbk"))
    names = {decoded(path, "gbk", tmp_path).path for _ in range(3)}
    assert len(names) == 3
    assert {stat.S_IMODE(name.stat().st_mode) for name in names} == {0o600}


def structure(text):
    """What divides a text into records and fields, in order."""
    return [sign for sign in text if sign in ',;\t\r\n"']


def moved(folder, encoding):
    """How many of all pairs of damaged bytes change the structure around them."""
    count = 0
    for sign, tail in itertools.product(',;\t\n"', ("", ",", "9\n", '"')):
        for start in DAMAGED[encoding]:
            # the bytes that may be a second, third or fourth one
            for more in (b"", b"0", b"\x81", b"\xfe9", b"A"):
                data = b"a," + start + more + sign.encode() + b"b" + tail.encode()
                text, _ = text_of(folder, data, encoding)
                count += structure(text) != structure(data.decode("latin-1"))
    return count


@pytest.mark.parametrize("encoding", DAMAGED)
def test_what_does_not_decode_moves_no_field(tmp_path, encoding):
    assert moved(tmp_path, encoding) == 0


def test_a_decoder_that_skips_what_it_could_not_read_is_noticed(tmp_path, monkeypatch):
    codecs.register_error(
        "sfumato.mutant", lambda error: (UNDECODED, min(error.end + 1, len(error.object)))
    )
    monkeypatch.setattr(csv_decoding, "_BY_BYTE", "sfumato.mutant")
    assert moved(tmp_path, "gb18030") > 0


def test_the_last_bytes_of_a_file_are_not_dropped_and_that_is_noticed(tmp_path, monkeypatch):
    data = b'a\n"\xdc9"'
    assert text_of(tmp_path, data, "gb18030") == (f'a\n"{UNDECODED}9"', 1)
    monkeypatch.setattr(csv_decoding, "_FLUSH", "")
    assert text_of(tmp_path, data, "gb18030") != (f'a\n"{UNDECODED}9"', 1)


BYTES = st.lists(
    st.sampled_from([*b',\n"09A|\r', 0x80, 0x81, 0xA1, 0xD8, 0xDC, 0xFE, 0xFF])
    | st.integers(0, 255),
    max_size=40,
).map(bytes)


@settings(deadline=None, max_examples=examples(4))
@given(BYTES, st.sampled_from([name for name in ENCODINGS if name != "utf-16"]))
def test_no_bytes_move_a_field_whatever_the_size_of_a_block(tmp_path_factory, data, encoding):
    folder = tmp_path_factory.getbasetemp()
    whole = text_of(folder, data, encoding)
    assert structure(whole[0]) == structure(data.decode("latin-1"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_decoding, "_BLOCK", 3)
        assert text_of(folder, data, encoding) == whole


@settings(deadline=None, max_examples=examples(1))
@given(st.lists(st.sampled_from([0x2C, 0x0A, 0x22, 0xD800, 0xDC00, 0xDFFF, 0x4E00])), st.booleans())
def test_a_half_of_a_pair_moves_no_field(tmp_path_factory, units, has_odd_end):
    folder = tmp_path_factory.getbasetemp()
    data = codecs.BOM_UTF16_BE + b"".join(unit.to_bytes(2) for unit in units)
    text, _ = text_of(folder, data + b"\xd8" * has_odd_end, "utf-16")
    assert structure(text) == [chr(unit) for unit in units if unit < 0x80]


def test_a_field_that_does_not_decode_is_null_and_the_others_are_not(tmp_path):
    path = tmp_path / "data.csv"
    path.write_bytes('姓名,n\n张三,1\n"李\n'.encode("gbk") + b'\xff",2\n\x80,3\n,\n')
    copy = decoded(path, "gbk", tmp_path)
    with duckdb.connect() as connection:
        item = without_undecoded(f"read_csv('{copy.path}', all_varchar = true)", ["姓名", "n"])
        rows = connection.execute(f"SELECT * FROM {item}").fetchall()
    assert copy.lost == 2
    assert rows == [("张三", "1"), (None, "2"), (None, "3"), (None, None)]
    # the same records, worked out by another parser
    text = copy.path.read_text(encoding="utf-8")
    _, *records = csv.reader(io.StringIO(text, newline=""))
    read = [[None if UNDECODED in cell or not cell else cell for cell in row] for row in records]
    assert [list(row) for row in rows] == read
