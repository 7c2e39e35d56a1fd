# SPDX-License-Identifier: Apache-2.0
"""Top N as a filter: a sub-query that gives groups is answered first, and becomes their list.

``region IN (SELECT region FROM t GROUP BY region ORDER BY COUNT(*) DESC LIMIT 3)``, or a JOIN of
such a sub-query USING (region) of which nothing else is read.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sqlglot import exp

from sfumato.errors import UnsupportedSql
from sfumato.metadata.column import Text
from sfumato.plan.question import Question
from sfumato.plan.scalar import Key
from sfumato.sql.bind import constant, copy_with_definitions


@dataclass(frozen=True, slots=True)
class KeyList:
    """A test ``column IN (...)`` in a statement, and the question whose groups are its list.

    ``place`` is the column of the question that has the groups.
    """

    test: exp.In
    query: exp.Select
    place: int

    def fill(self, values: Sequence[object]) -> None:
        """Sets the list, in place; a group of missing values is in no list.

        An empty list holds for no row.
        """
        constants = [constant("A group", value) for value in values if value is not None]
        if constants:
            self.test.set("expressions", constants)
        else:
            self.test.replace(exp.Boolean(this=False))


def declared_values(question: Question, place: int) -> list[object]:
    """Returns the declared groups of a key, one column of a question; [""] if they are not public.

    ``place`` is the position of the column in SELECT.

    Raises:
        UnsupportedSql: the column is no key.
    """
    expression = question.output.items[place].expression
    if not isinstance(expression, Key):
        raise UnsupportedSql(
            "A sub-query in the place of a list whose column is no key of GROUP BY.",
            remedy="SELECT the key: IN (SELECT region FROM ... GROUP BY region ... LIMIT 3).",
        )
    key = question.raw.keys[expression.index]
    kind = key.value.type
    if isinstance(kind, Text):
        return [""]
    return [kind.decode(code) for code in key.codes or ()]


def key_lists(select: exp.Select) -> list[KeyList]:
    """Removes the sub-queries that select top groups from a statement, in place, and returns them.

    Each leaves a test with an empty list, to be filled. What is no such sub-query stays.

    >>> from sfumato.sql.parse import parse
    >>> top = "SELECT g FROM t GROUP BY g ORDER BY COUNT(*) DESC LIMIT 2"
    >>> tree = parse(f"SELECT COUNT(*) FROM t WHERE g IN ({top})")
    >>> (found,) = key_lists(tree)
    >>> found.fill(["a", "b"])
    >>> tree.sql()
    "SELECT COUNT(*) FROM t WHERE g IN ('a', 'b')"
    """
    _put_in_place(select)
    lists = []
    tests, joins = list(select.find_all(exp.In)), list(select.find_all(exp.Join))
    for found in [*map(_of_test, tests), *map(_of_join, joins)]:
        if found is not None:
            lists.append(found)
    return lists


def _of_test(test: exp.In) -> KeyList | None:
    """The list of ``column IN (SELECT key ... LIMIT n)``; None for any other test."""
    query = test.args.get("query")
    if not isinstance(query, exp.Subquery) or len(query.this.expressions) != 1:
        return None
    place = 0
    if not _gives_groups(query.this):
        # SELECT key FROM (a sub-query that gives groups)
        column, source = query.this.expressions[0].unalias(), query.this.args.get("from_")
        if not _is_plain(query.this) or not isinstance(source.this, exp.Subquery):
            return None
        query = source.this
        names = [item.alias_or_name.lower() for item in query.this.expressions]
        if not _gives_groups(query.this) or column.name.lower() not in names:
            return None
        place = names.index(column.name.lower())
    inner = copy_with_definitions(query)
    test.set("query", None)
    return KeyList(test, inner, place)


def _is_plain(query: exp.Expr) -> bool:
    """Whether a query is SELECT columns FROM one source, and nothing else."""
    if not isinstance(query, exp.Select) or not isinstance(query.expressions[0], exp.Column):
        return False
    return {name for name, value in query.args.items() if value} == {"expressions", "from_"}


def _put_in_place(select: exp.Select) -> None:
    """Puts the queries of WITH that give groups in the places of their names."""
    clause = select.args.get("with_")
    if clause is None:
        return
    for definition in list(clause.expressions):
        body = definition.this
        if not _gives_groups(body) or definition.args["alias"].args.get("columns"):
            continue
        name = definition.alias.lower()
        for table in list(select.find_all(exp.Table)):
            if table.name.lower() == name and not table.args.get("db"):
                alias = exp.TableAlias(this=exp.to_identifier(table.alias_or_name))
                table.replace(exp.Subquery(this=body.copy(), alias=alias))
        definition.pop()
    if not clause.expressions:
        select.set("with_", None)


def _of_join(join: exp.Join) -> KeyList | None:
    """The list of ``JOIN (SELECT key, ... LIMIT n) USING (key)``; None for any other join."""
    query, select = join.this, join.parent
    if not isinstance(query, exp.Subquery) or not isinstance(select, exp.Select):
        return None
    if join.args.get("side") or join.args.get("kind") not in (None, "", "INNER"):
        return None
    if not _gives_groups(query.this):
        return None
    column = _joined_by(join, query)
    names = [item.alias_or_name.lower() for item in query.this.expressions]
    if column is None or column.name.lower() not in names:
        return None
    place = names.index(column.name.lower())
    if _is_read_elsewhere(select, join, query.alias.lower(), {*names} - {names[place]}):
        return None
    inner = copy_with_definitions(query)
    test = exp.In(this=column, expressions=[])
    join.pop()
    select.where(test, copy=False)
    return KeyList(test, inner, place)


def _gives_groups(query: exp.Expr) -> bool:
    """Whether a query shows some of its groups: those of a LIMIT."""
    return (
        isinstance(query, exp.Select)
        and query.args.get("group") is not None
        and query.args.get("limit") is not None
        and query.find(exp.AggFunc) is not None
    )


def _joined_by(join: exp.Join, query: exp.Subquery) -> exp.Column | None:
    """The column outside that a join equates with a column of the sub-query."""
    using = join.args.get("using")
    if using:
        return exp.column(using[0].name) if len(using) == 1 else None
    on = join.args.get("on")
    if not isinstance(on, exp.EQ):
        return None
    for own, other in ((on.left, on.right), (on.right, on.left)):
        if not isinstance(own, exp.Column) or not isinstance(other, exp.Column):
            return None
        is_inside = own.table.lower() == query.alias.lower() and own.name == other.name
        if is_inside and other.table.lower() != query.alias.lower():
            return other.copy()
    return None


def _is_read_elsewhere(
    select: exp.Select, join: exp.Join, alias: str, names: Collection[str]
) -> bool:
    """Whether a statement reads a sub-query outside its join; ``names`` are its other columns."""
    for column in select.find_all(exp.Column):
        if column.find_ancestor(exp.Join) is join:
            continue
        if column.table.lower() == alias != "" or (
            not column.table and column.name.lower() in names
        ):
            return True
    return False
