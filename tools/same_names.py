# SPDX-License-Identifier: Apache-2.0
"""Proves that a change of Python files is one of names alone: ``python -m tools.same_names OLD [NEW]``.

OLD and NEW are commits; without NEW the working tree is compared. Both versions of a file are
compiled without their docstrings. The compiler has resolved each name to its scope, so a renamed
variable leaves the instructions equal, and one that captures another, or that no longer reaches
its definition, does not. On top of that, names map one to one in each scope; a renamed function
or attribute is defined in a changed file; no stored or public name is renamed, nor given; strings
differ only in words that are renamed names. Annotations of locals are not compiled: mypy reads them.
"""

import ast
import dis
import importlib
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType
from typing import Any

PUBLIC = Path("tests/stored/2026_11/signatures.txt")
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_PARAMETERS = re.compile(r"\*?(\w+)")
# Cells stand in the order of their names; long programs have longer arguments.
_ORDER = {"EXTENDED_ARG", "LOAD_CLOSURE", "MAKE_CELL", "CACHE", "NOP"}


class Different(Exception):
    """The files differ in more than names."""


@dataclass
class Changes:
    """The pairs of names of two versions of a file, unchanged ones included."""

    names: set[tuple[str, str]] = field(default_factory=set)
    variables: set[tuple[str, str]] = field(default_factory=set)
    parameters: set[tuple[str, str, str]] = field(default_factory=set)
    strings: set[tuple[str, str]] = field(default_factory=set)
    defined: set[str] = field(default_factory=set)
    fields: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Frozen:
    """Names that nobody may rename, and the parameters of public functions."""

    names: frozenset[str] = frozenset()
    parameters: Mapping[str, frozenset[str]] = field(default_factory=dict)


def compare(old: str, new: str) -> Changes:
    """The pairs of names of two versions of a file; raises ``Different``."""
    trees = _prepared(old), _prepared(new)
    (before, imports), (after, new_imports) = (_without_imports(tree) for tree in trees)
    if _shape(before) != _shape(after):
        raise Different("the syntax trees differ")
    changes = Changes()
    codes = [
        compile(ast.unparse(tree), "file", "exec", dont_inherit=True) for tree in (before, after)
    ]
    _compare_code(codes[0], codes[1], "", frozenset(), changes)
    renamed = dict(changes.names)
    expected = sorted((module, renamed.get(name, name), bound and renamed.get(bound, bound))
                      for module, name, bound in imports)  # fmt: skip
    if expected != sorted(new_imports):
        raise Different("the imports differ")
    imported = {name.partition(".")[0] for _, *names in imports for name in names if name}
    changes.names |= {(name, renamed.get(name, name)) for name in imported}
    _check_one_to_one("the file", changes.names)
    every = ast.walk(trees[1])
    changes.defined = {node.name for node in every if isinstance(node, _DEFINITIONS)}
    changes.defined |= _assigned(trees[1], ast.Module)
    changes.fields = _assigned(trees[0], ast.ClassDef)
    return changes


def problems(files: Mapping[str, tuple[str, str]], frozen: Frozen) -> list[str]:
    """Why a change of files, given as old and new texts, is not one of names alone."""
    found: list[str] = []
    changed: dict[str, Changes] = {}
    for path, (old, new) in files.items():
        try:
            changed[path] = compare(old, new)
        except Different as difference:
            found.append(f"{path}: {difference}")
    every = list(changed.values())
    defined = set().union(*(each.defined for each in every))
    quoted = set().union(*(each.names | each.variables for each in every))
    for path, changes in changed.items():
        for old, new in sorted(pair for pair in changes.names if pair[0] != pair[1]):
            if {old, new} & frozen.names or old in changes.fields:
                found.append(f"{path}: {old} -> {new} is stored, public or a field")
            if new not in defined:
                found.append(f"{path}: {old} -> {new} is defined in no changed file")
        for function, old, new in sorted(changes.parameters):
            if old != new and old in frozen.parameters.get(function, ()):
                found.append(f"{path}: {old} is a parameter of the public {function}")
        for old, new in sorted(changes.strings):
            if not _quotes(old, new, quoted):
                found.append(f"{path}: {old!r} became {new!r}")
    return found


def _prepared(text: str) -> ast.Module:
    """The syntax tree without docstrings, laid out anew so that lines do not count."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        match node:
            case ast.Module() | ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                if ast.get_docstring(node) is not None:
                    node.body = node.body[1:] or [ast.Pass()]
    return tree


def _without_imports(tree: ast.Module) -> tuple[ast.Module, list[tuple[str, str, str]]]:
    """The module without its own imports, which are sorted by name, and those imports."""
    imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    others = [node for node in tree.body if node not in imports]
    named = [
        (
            f"{getattr(node, 'level', '')}{getattr(node, 'module', '')}",
            alias.name,
            alias.asname or "",
        )
        for node in imports
        for alias in node.names
    ]
    return ast.Module(others, []), named


def _shape(tree: ast.AST) -> list[str]:
    """The kinds of all nodes, and all constants that are no strings."""
    return [
        repr(node.value)
        if isinstance(node, ast.Constant) and not isinstance(node.value, str)
        else type(node).__name__
        for node in ast.walk(tree)
    ]


def _compare_code(
    old: CodeType, new: CodeType, place: str, outer: frozenset[tuple[str, str]], changes: Changes
) -> None:
    """Compares the instructions of a scope and of the scopes in it; ``outer`` encloses it."""
    for count in ("co_argcount", "co_posonlyargcount", "co_kwonlyargcount", "co_flags"):
        if getattr(old, count) != getattr(new, count):
            raise Different(f"{place}: other parameters")
    number = old.co_argcount + old.co_kwonlyargcount
    number += bool(old.co_flags & 4) + bool(old.co_flags & 8)
    parameters = set(zip(old.co_varnames[:number], new.co_varnames[:number], strict=True))
    local, inner = set(parameters), []
    steps, new_steps = list(_steps(old)), list(_steps(new))
    if [step[0] for step in steps] != [step[0] for step in new_steps]:
        raise Different(f"{place or 'module'}: other instructions, or a name has another scope")
    for (code, value), (_, other) in zip(steps, new_steps, strict=True):
        if code in dis.hasfree or code in dis.haslocal:
            local |= _pairs(value, other)
        elif code in dis.hasname:
            changes.names |= _pairs(value, other)
        elif isinstance(value, CodeType) and isinstance(other, CodeType):
            inner.append((value, other))
        else:
            _compare_constants(value, other, place, changes)
    free = {pair for pair in local if pair[0] in old.co_freevars or pair[1] in new.co_freevars}
    if not free <= outer | {("__class__", "__class__")}:
        raise Different(f"{place}: a variable of another scope is meant")
    _check_one_to_one(place, local)
    changes.variables |= local
    changes.parameters |= {(place, *pair) for pair in parameters}
    for value, other in inner:
        name = f"{place}.{value.co_name}".removeprefix(".")
        _compare_code(value, other, name, frozenset(outer | local), changes)


def _steps(code: CodeType) -> Iterator[tuple[int, Any]]:
    """The instructions and what they are about; jumps lead to the number of an instruction."""
    every = list(dis.get_instructions(code))
    number, numbers = 0, {}
    for step in every:
        numbers[step.offset] = number
        number += step.opname not in _ORDER
    for step in every:
        if step.opname == "KW_NAMES":
            yield step.opcode, code.co_consts[step.arg or 0]
        elif step.opname not in _ORDER:
            is_jump = step.opcode in dis.hasjrel or step.opcode in dis.hasjabs
            yield step.opcode, numbers.get(step.argval) if is_jump else step.argval


def _pairs(old: Any, new: Any) -> set[tuple[str, str]]:
    """The names of an instruction; some have several."""
    if isinstance(old, tuple):
        return set(zip(old, new, strict=True))
    return {(old, new)}


def _compare_constants(old: Any, new: Any, place: str, changes: Changes) -> None:
    if isinstance(old, str) and isinstance(new, str):
        changes.strings |= {(old, new)} if old != new else set()
    elif isinstance(old, tuple) and isinstance(new, tuple) and len(old) == len(new):
        for value, other in zip(old, new, strict=True):
            _compare_constants(value, other, place, changes)
    elif repr(old) != repr(new) and not (isinstance(old, frozenset) and old == new):
        raise Different(f"{place}: {old!r} became {new!r}")


def _check_one_to_one(place: str, pairs: Iterable[tuple[str, str]]) -> None:
    own = set(pairs)
    for side in (0, 1):
        if len({pair[side] for pair in own}) < len(own):
            raise Different(f"{place}: not one to one: {sorted(p for p in own if p[0] != p[1])}")


def _assigned(tree: ast.AST, kind: type[ast.Module] | type[ast.ClassDef]) -> set[str]:
    """The names that bodies of such nodes assign."""
    bodies = [node.body for node in ast.walk(tree) if isinstance(node, kind)]
    statements = [statement for body in bodies for statement in body]
    targets = [target for statement in statements for target in getattr(statement, "targets", [])]
    targets += [each.target for each in statements if isinstance(each, ast.AnnAssign)]
    return {node.id for node in targets if isinstance(node, ast.Name)}


def _quotes(old: str, new: str, renamed: set[tuple[str, str]]) -> bool:
    """Whether two strings differ only in words that are renamed names."""
    words, others = re.split(r"(\W+)", old), re.split(r"(\W+)", new)
    pairs = zip(words, others, strict=False)
    return len(words) == len(others) and all(a == b or (a, b) in renamed for a, b in pairs)


def frozen_names() -> Frozen:
    """The stored and public names, as ``tests/stored`` pins them."""
    # it reads the whole package
    pinned = importlib.import_module("tests.stored.names").pinned_names()
    parameters: dict[str, frozenset[str]] = {}
    for line in PUBLIC.read_text(encoding="utf-8").splitlines():
        name, _, shown = line.partition(": ")
        own = frozenset(_PARAMETERS.findall(re.sub(r"=.*?( \||$)", " ", shown)))
        parts = name.split(".")
        for known in (parts[-1], ".".join(parts[-2:]), f"{parts[-1]}.__init__"):
            parameters[known] = parameters.get(known, frozenset()) | own
    public = {name for known in parameters for name in known.split(".")}
    return Frozen(frozenset(public | {each.name for each in pinned}), parameters)


def main(commits: list[str]) -> int:
    """Prints why a change is not one of names alone, or its renames."""

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], check=True, capture_output=True, text=True).stdout

    def text(path: str) -> str:
        return (
            git("show", f"{commits[1]}:{path}")
            if commits[1:]
            else Path(path).read_text(encoding="utf-8")
        )

    def changed(kind: str) -> list[str]:
        wanted = ("--name-only", "--no-renames", f"--diff-filter={kind}")
        return git("diff", *wanted, *commits, "--", "*.py").split()

    paths = changed("M")
    files = {path: (git("show", f"{commits[0]}:{path}"), text(path)) for path in paths}
    found = [f"{path}: the file came or went" for path in changed("m")]
    found += problems(files, frozen_names())
    print("\n".join(found) or f"{len(files)} files differ in names alone")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
