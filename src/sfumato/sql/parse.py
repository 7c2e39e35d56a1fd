# SPDX-License-Identifier: Apache-2.0
"""Parses a statement into the syntax tree of one SELECT, or refuses it."""

import logging
import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from sfumato.errors import SqlSyntaxError, UnsupportedSql
from sfumato.sql.comma_join import with_conditions
from sfumato.sql.correlated import with_joins
from sfumato.sql.reject import NOT_A_QUERY, refuse, reject, require_few, written
from sfumato.sql.spelling import respelled

# sqlglot warns on the console about statements that we refuse anyway.
logging.getLogger("sqlglot").setLevel(logging.ERROR)

_DIALECT = Dialect.get_or_raise("duckdb")
# Planning time is proportional to the nodes of a statement; these take about 0.1 s.
_MAX_LENGTH, _MOST_NODES = 40_000, 3_500
# A statement over private answers is planned part by part.
_MOST_OF_PARTS = 1_500
# A statement of fewer characters cannot have that many nodes, whatever WITH repeats.
_SHORT = 1_000
# Details of parser internals in an error message.
# A word that may be the second one of a name, and that no SELECT has after another one.
_NAME = r"(?i)(?!(as|by|from|join|on|where|group|having|order|limit|and|or)$)[^\W\d]\w*"
_CLAUSES = ("from", "where", "group", "order", "having", "limit")
_BLANK = '. A name with a blank stands in double quotes: "{}".'
_INSIDE = re.compile(r"Required keyword: .* missing for <class .*|( but got)? <Token .*")
_SHAPE = "SELECT ... FROM table [WHERE ...] [GROUP BY ...] [HAVING ...] [ORDER BY ...] [LIMIT n]"
# A parameter that the tokenizer takes for the start of a string, $1,$, as in IN ($1,$2).
_TOUCHING = re.compile(
    r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|/\*.*?\*/|\$([^\W\d]\w*)?\$.*?\$\1\$"""
    r"""|(?P<name>\$\w+)(?=[^\s\w$][^\s$]*\$)""",
    re.DOTALL,
)
# The beginning of a statement of SQL Server; a percentage or ties are not read.
_TOP = re.compile(
    r"\s*(?P<select>SELECT(\s+DISTINCT)?)"
    r"\s+TOP(\s+(?P<count>\d+)|\s*\(\s*(?P<inside>\d+)\s*\))(?!\s+(PERCENT|WITH)\b)(?=\s)",
    re.IGNORECASE,
)
# This one is a function to the parser.
_BRACKETED = re.compile(r"\s*SELECT(\s+DISTINCT)?\s+TOP\s*\(", re.IGNORECASE)
_IN_PLACE_OF_TOP = "Write LIMIT n at the end of the SELECT, in place of TOP n at its beginning."
# Lowering and evaluation recurse a few calls a level; this leaves stack for the caller.
_DEEPEST = 120


def parse(text: str) -> exp.Select:
    """Returns the syntax tree of the one SELECT in ``text``.

    Raises:
        SqlSyntaxError: not SQL; the line and column are given.
        UnsupportedSql: several statements, or one that is not a SELECT.
    """
    statements = _statements(text)
    if not statements:
        raise SqlSyntaxError(
            "The statement is empty.", line=1, column=1, remedy="SELECT COUNT(*) FROM ..."
        )
    if len(statements) > 1:
        raise UnsupportedSql(
            f"{len(statements)} statements in one text.", remedy="Ask one SELECT at a time."
        )
    select = _check_statement(statements[0])
    if len(text) > _SHORT:
        _require_few_nodes(select)
    return select


def parse_query(statement: str | exp.Select) -> exp.Query:
    """Returns a new syntax tree of the one SELECT or UNION of a statement.

    Raises:
        As ``parse``; a set operation is not refused, but a statement of more than 1,500 parts is.
    """
    query = _query_of(statement)
    _require_few_nodes(query, _MOST_OF_PARTS)
    return query


def _query_of(statement: str | exp.Select) -> exp.Query:
    """Returns the tree of ``parse_query``."""
    if isinstance(statement, exp.Expr):
        return built(statement)
    statements = _statements(statement)
    if len(statements) == 1 and isinstance(statements[0], exp.SetOperation):
        # the names of WITH may repeat their queries many times
        _require_few_nodes(statements[0], _MOST_OF_PARTS)
        for select in statements[0].find_all(exp.Select):
            _check_statement(select)
        return statements[0]
    return parse(statement)


def _check_statement(statement: exp.Expr) -> exp.Select:
    """Returns the statement if it is a SELECT that is not nested too deeply; else refuses it."""
    if isinstance(statement, exp.Query | exp.Values) and not isinstance(statement, exp.Select):
        raise reject(statement)
    if not isinstance(statement, exp.Select):
        raise refuse(f"The statement {written(statement).partition(' ')[0].upper()}", NOT_A_QUERY)
    if _depth(statement, {}) > _DEEPEST:
        raise _too_deep()
    return with_conditions(with_joins(respelled(statement)))


def built(statement: exp.Expr) -> exp.Select:
    """Returns a copy, as a SELECT, of a syntax tree that a caller built, after checking it.

    Raises:
        UnsupportedSql: a tree with a part missing, or anything that ``parse`` refuses.
    """
    broken = next((node for node in statement.walk() if not _is_whole(node)), None)
    if broken is not None:
        raise UnsupportedSql(
            f"A syntax tree in which {broken.key.upper()} lacks a part or has one too many.",
            remedy="Build it as SQL has it.",
        )
    select = _check_statement(statement.copy())
    _require_few_nodes(select)
    return select


def _is_whole(node: exp.Expr) -> bool:
    """Whether a node has all the arguments that its kind needs, and no others."""
    try:
        return not node.error_messages()
    except TypeError:
        # an argument that this kind of node does not have
        return False


def _statements(text: str) -> list[exp.Expr]:
    if not isinstance(text, str) or len(text) > _MAX_LENGTH:
        raise UnsupportedSql(
            f"A statement that is not a text of at most {_MAX_LENGTH:,} characters."
        )
    try:
        text.encode()
        if _BRACKETED.match(text) and (limited := _with_limit(text)) is not None:
            return limited
        trees = _DIALECT.parse(_number_parameters(_part_parameters(text)))
        return [tree for tree in trees if not isinstance(tree, exp.Semicolon | None)]
    except SqlglotError as error:
        limited = _with_limit(text)
        if limited is not None:
            return limited
        raise _syntax_error(error, text) from None
    except UnicodeEncodeError:
        raise UnsupportedSql(
            "A statement with half a character (a lone surrogate).", remedy="Remove it."
        ) from None
    except RecursionError:
        raise _too_deep() from None
    except Exception:
        # the parser raises other errors on some strings that are not SQL
        raise SqlSyntaxError(
            "Not SQL: The text cannot be read.", line=1, column=1, remedy=_SHAPE
        ) from None


def _with_limit(text: str) -> list[exp.Expr] | None:
    """Returns the one SELECT of a text that begins with SELECT TOP n, as if it ended with LIMIT n;
    None for other texts.
    """
    match = _TOP.match(text)
    if match is None:
        return None
    try:
        (select,) = _statements(f"{match['select']} {text[match.end() :]}")
    except (SqlSyntaxError, ValueError):
        return None
    if not isinstance(select, exp.Select) or select.args.get("limit"):
        return None
    return [select.limit(match["count"] or match["inside"], copy=False)]


def _part_parameters(text: str) -> str:
    """Adds a space after each parameter that the tokenizer would read as the start of a string."""
    if text.count("$") < 2:
        return text
    return _TOUCHING.sub(lambda part: f"{part[0]} " if part["name"] else part[0], text)


def _number_parameters(text: str) -> str:
    """Replaces each ``?`` by $1, $2, ... in order of appearance, and ``:name`` by $name."""
    if "?" not in text and ":" not in text:
        return text
    pieces = []
    done = 0
    count = 0
    tokens = _DIALECT.tokenize(text)
    for place, token in enumerate(tokens):
        if token.token_type is TokenType.PLACEHOLDER:
            count += 1
            pieces += [text[done : token.start], f"${count}"]
            done = token.end + 1
        elif _names_parameter(tokens, place):
            pieces += [text[done : token.start], "$"]
            done = token.end + 1
    return "".join([*pieces, text[done:]])


def _names_parameter(tokens: Sequence[Token], place: int) -> bool:
    """Whether a token is the colon of ``:name``.

    It stands directly before a name, and not directly after one, as in ``a:b``.
    """
    colon = tokens[place]
    if colon.token_type is not TokenType.COLON or place + 1 == len(tokens):
        return False
    name = tokens[place + 1]
    if name.start != colon.end + 1 or not name.text.isidentifier():
        return False
    if place == 0:
        return True
    before = tokens[place - 1]
    return before.end + 1 != colon.start or not before.text.isidentifier()


def _depth(statement: exp.Expr, known: Mapping[str, int]) -> int:
    """Returns the nesting depth of a statement.

    A table that WITH defines, here or in ``known``, counts with the depth of its query.
    """
    deepest = 0
    waiting = [(statement, 1, known)]
    while waiting and deepest <= _DEEPEST:
        node, depth, names = waiting.pop()
        clause = node.args.get("with_")
        if isinstance(clause, exp.With):
            require_few(len(clause.expressions), "names in WITH")
            names = dict(names)
            for definition in clause.expressions:
                names[definition.alias.lower()] = _depth(definition.this, names)
        deepest = max(deepest, depth)
        if isinstance(node, exp.Table):
            deepest = max(deepest, depth + names.get(node.name.lower(), 0))
        for part in node.iter_expressions():
            # a long chain of AND or OR is one level
            chained = isinstance(node, exp.And | exp.Or) and type(part) is type(node)
            if part is not clause:
                waiting.append((part, depth if chained else depth + 1, names))
    return deepest


def _require_few_nodes(statement: exp.Expr, most: int = _MOST_NODES) -> None:
    """Refuses a statement with too many nodes: it would take long to plan."""
    if _size(statement, {}) > most:
        raise UnsupportedSql(
            f"A statement of more than {most:,} parts, those of repeated sub-queries included.",
            remedy="Use IN (...) for long lists of values, or ask less at once.",
        )


def _size(statement: exp.Expr, known: Mapping[str, int]) -> int:
    """Returns the number of nodes of a statement.

    A table that WITH defines, here or in ``known``, counts with the nodes of its query.
    """
    count = 0
    waiting = [(statement, known)]
    while waiting and count <= _MOST_NODES:
        node, names = waiting.pop()
        clause = node.args.get("with_")
        if isinstance(clause, exp.With):
            names = dict(names)
            for definition in clause.expressions:
                names[definition.alias.lower()] = _size(definition.this, names)
        count += 1
        if isinstance(node, exp.Table):
            count += names.get(node.name.lower(), 0)
        waiting += [(part, names) for part in node.iter_expressions() if part is not clause]
    return count


def _too_deep() -> UnsupportedSql:
    return UnsupportedSql(
        "A statement that is nested too deeply.",
        remedy="Use IN (...) for long lists of values, fewer brackets, "
        "and fewer names in WITH that use one another.",
    )


def _end_of(text: str) -> dict[str, str | int]:
    """Returns the error of a quote that is not closed; the tokenizer gives no position for it."""
    return {
        "description": "A quote or a comment is not closed",
        "line": text.count("\n") + 1,
        "col": len(text) - text.rfind("\n") - 1,
    }


def _syntax_error(error: SqlglotError, text: str) -> SqlSyntaxError:
    """Returns the refusal for an error of the parser, with its line and column."""
    first = (getattr(error, "errors", None) or [_end_of(text)])[0]
    line = int(first.get("line") or 1)
    column = int(first.get("col") or 1)
    description = str(first.get("description") or "The text cannot be read")
    what = _INSIDE.sub("", description).strip().rstrip(".")
    near = str(first.get("highlight") or "")[:40]
    at = f" at {near!r}" if near else ""
    # a word after another one, but not after the first of the statement
    before = re.search(r"[\w)\"']\s.*?(\w+)\s+$", str(first.get("start_context") or ""), re.DOTALL)
    is_name = before is not None and re.fullmatch(_NAME, near) is not None
    words = (before[1].lower(), near.lower()) if before is not None else ()
    slips = (
        each
        for word in words
        for each in get_close_matches(word, _CLAUSES, cutoff=0.7)
        if each[0] == word[0]
    )
    if any(slips):
        # rather a clause with a slip of the pen
        is_name = False
    quoted = f"{before[1]} {near}" if before is not None else ""
    remedy = _SHAPE + (_BLANK.format(quoted) if is_name else "")
    if re.search(r"\bSELECT\s+(DISTINCT\s+)?TOP\s*[(\d]", text, re.IGNORECASE):
        remedy = _IN_PLACE_OF_TOP
    return SqlSyntaxError(
        f"Not SQL: {what or 'Something is missing'}{at}, line {line}, column {column}.",
        line=line,
        column=column,
        remedy=remedy,
    )
