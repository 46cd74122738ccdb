"""The SQL of the product: what each file holds, who uses it, what each statement does."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import apsw
import apsw.ext

from tests.tidy.repository import File, Module

SCHEMA = "migrations_forbidden/schema_v1.sql"

_NAME = re.compile(r"^-- name: (\S+)$", re.MULTILINE)
_WRITES = frozenset({"SQLITE_INSERT", "SQLITE_UPDATE", "SQLITE_DELETE"})


@dataclass(frozen=True, slots=True)
class Statement:
    """A named statement of a `.sql` file."""

    file: str
    name: str
    text: str

    @property
    def where(self) -> str:
        """What people look for: the file and the name."""
        return f"{self.file}: {self.name}"


@dataclass(frozen=True, slots=True)
class Effect:
    """What SQLite says that a statement does."""

    writes: frozenset[str]
    is_readonly: bool
    rest: str
    unnamed: bool


def statements(file: File) -> tuple[Statement, ...]:
    """Return the statements of a file, in order."""
    text = file.text or ""
    found = list(_NAME.finditer(text))
    ends = [*(match.start() for match in found[1:]), len(text)]
    return tuple(
        Statement(file.path, match[1], text[match.end() : end].strip())
        for match, end in zip(found, ends, strict=True)
    )


def database(schema: str) -> apsw.Connection:
    """Return an empty database in memory that has the schema; one like it is its `source`."""
    connection = apsw.Connection(":memory:")
    # apsw's types name a class that Python 3.11 does not have.
    connection.execute(schema)  # pyright: ignore[reportUnknownMemberType]
    content = connection.serialize("main")
    connection.execute("ATTACH ':memory:' AS source")  # pyright: ignore[reportUnknownMemberType]
    connection.deserialize("source", content)  # pyright: ignore[reportUnknownMemberType]
    return connection


def effect(connection: apsw.Connection, statement: Statement) -> Effect:
    """Prepare a statement, without running it.

    Raises:
        apsw.SQLError: It does not fit the schema.
    """
    info = apsw.ext.query_info(  # pyright: ignore[reportUnknownMemberType]
        connection, statement.text, actions=True
    )
    writes = {
        action.table_name
        for action in info.actions or ()
        if action.action_name in _WRITES and action.table_name is not None
    }
    unnamed = any(not name for name in info.bindings_names)
    return Effect(frozenset(writes), info.is_readonly, info.query_remaining or "", unnamed)


@dataclass(frozen=True, slots=True)
class Use:
    """What one module does with statements.

    Attributes:
        module: Its path.
        names: The files that it has, by the name under which it has them.
        keys: The file, the name and the line of each statement that it asks for.
        takes_all: The files of which it takes every statement.
    """

    module: str
    names: dict[str, str]
    keys: tuple[tuple[str, str, int], ...]
    takes_all: frozenset[str]


def _loaded(node: ast.expr, folder: str) -> str | None:
    """Return the path of the file that `load(package, name)` reads, None for another expression."""
    match node:
        case ast.Call(func=ast.Name(id="load"), args=[package, ast.Constant(value=str(name))]):
            pass
        case _:
            return None
    if isinstance(package, ast.Constant):
        return f"{str(package.value).replace('.', '/')}/{name}"
    assert "__package__" in ast.unparse(package), ast.unparse(package)
    return f"{folder}/{name}"


def _assigned(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """Yield the names that a module assigns at its top level, with their values."""
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                yield name, value
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                yield name, value
            case _:
                pass


def _loads(each: Module) -> dict[str, str]:
    """Return the files that a module loads, by the name that it gives them."""
    found = {name: _loaded(value, each.folder) for name, value in _assigned(each.tree)}
    return {name: path for name, path in found.items() if path is not None}


def _imports(each: Module, loads: dict[str, dict[str, str]]) -> dict[str, str]:
    """Return the files that a module has from another one that loads them."""
    found: dict[str, str] = {}
    for node in ast.walk(each.tree):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            theirs = loads.get(f"{node.module.replace('.', '/')}.py", {})
            for alias in node.names:
                if alias.name in theirs:
                    found[alias.asname or alias.name] = theirs[alias.name]
    return found


def uses(modules: Sequence[Module]) -> list[Use]:
    """Return what each module does with SQL files."""
    loads = {each.path: _loads(each) for each in modules}
    return [_use(each, {**loads[each.path], **_imports(each, loads)}) for each in modules]


def _use(each: Module, names: dict[str, str]) -> Use:
    """Return what a module does with the files that it has under these names."""
    keys: list[tuple[str, str, int]] = []
    takes_all: set[str] = set()
    for node in ast.walk(each.tree):
        match node:
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=str(key))):
                if name in names:
                    keys.append((names[name], key, node.lineno))
            case ast.Attribute(value=ast.Name(id=name), attr="items" | "values"):
                if name in names:
                    takes_all.add(names[name])
            case _:
                pass
    return Use(each.path, names, tuple(keys), frozenset(takes_all))


def _literals(each: Module) -> set[str]:
    """Return the string constants of a module."""
    return {
        node.value
        for node in ast.walk(each.tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def misused(files: Sequence[File], modules: Sequence[Module]) -> Iterator[str]:
    """Find files that nobody loads, statements that nobody names, and names without a statement.

    Args:
        files: The `.sql` files.
        modules: The modules of the product.
    """
    known = {file.path: {each.name for each in statements(file)} for file in files}
    every = uses(modules)
    for file, names in known.items():
        users = {each.module for each in every if file in each.names.values()}
        if not users:
            yield f"{file}: nobody loads it"
        elif not any(file in each.takes_all for each in every):
            named = set[str]().union(*(_literals(each) for each in modules if each.path in users))
            yield from (f"{file}: {name} is used nowhere" for name in sorted(names - named))
    for each in every:
        for file, key, line in each.keys:
            if file in known and key not in known[file]:
                yield f"{each.module}:{line}: {file} has no {key}"
        for file in sorted(set(each.names.values()) - known.keys()):
            yield f"{each.module}: there is no {file}"
