# SPDX-License-Identifier: Apache-2.0
"""A hook of the documentation site: what lies outside of docs/ is named there, and not linked."""

import re
from typing import Any

_UP = re.compile(r"\[([^\]]+)\]\((?:\.\./)+[^)]*\)")


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Replaces links that leave the site by their text.

    >>> from types import SimpleNamespace
    >>> page = SimpleNamespace(file=SimpleNamespace(src_uri="query.md"))
    >>> on_page_markdown("[the licence](../LICENSE)", page=page)
    'the licence'
    """
    depth = page.file.src_uri.count("/")

    def linked(link: re.Match[str]) -> str:
        up = link[0].count("../")
        return link[1] if up > depth else link[0]

    return _UP.sub(linked, markdown)
