# SPDX-License-Identifier: Apache-2.0
"""Parts of a page: escaped, and the exact numbers in them."""

import pyarrow as pa

import sfumato as sf
from sfumato.synthetic.beside import compare
from sfumato.synthetic.page import HIDDEN, compared_html, section, table, text


def test_cells_titles_and_headers_are_escaped():
    assert text("<&") == "&lt;&amp;"
    assert section("<t>", "<p>") == "<section><h2>&lt;t&gt;</h2><p></section>"
    assert "<th>&lt;h&gt;</th>" in table(["<h>"], []) and "<td>&lt;c&gt;</td>" in table(
        [], [["<c>"]]
    )


def test_words_in_cells_are_marked_for_translation():
    assert f"<td><em>{HIDDEN}</em></td>" in table(["a"], [[HIDDEN]])


def test_exact_numbers_are_on_the_page():
    rows, known = pa.table({"<a>": [0, 1, 1, 1]}), pa.table({"<a>": [0, 0, 1, 1]})
    public = sf.Table(known, columns={"<a>": sf.Integer(0, 1)}, public=True)
    page = compared_html(compare("census", rows, public))
    assert "0.2500 (&lt;a&gt;)" in page and "4 rows beside 4 public ones" in page
    assert "<td>0.5</td>" in page and "correlation" not in page
