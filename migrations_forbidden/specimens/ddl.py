"""The DDL taken apart: tables by their columns and constraints, indexes by theirs.

Every piece keeps its text, so that what is put together again is what was taken apart. It reads the
one schema as it is written, and no other: names are bare words, an index has columns only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, Self

_TABLE: Final = re.compile(r"CREATE TABLE (\w+) \((.*)\n(\)[^)]*)", re.DOTALL)
_INDEX: Final = re.compile(r"CREATE (UNIQUE )?INDEX (\w+) ON (\w+) \(([^)]*)\)(.*)", re.DOTALL)
_CONSTRAINTS: Final = ("PRIMARY KEY", "UNIQUE", "CHECK", "FOREIGN KEY")
_LISTS: Final = ("PRIMARY KEY", "UNIQUE")
WITHOUT_ROWID: Final = ", WITHOUT ROWID"


@dataclass(frozen=True, slots=True)
class Item:
    """A column or a constraint of a table, with the space before it."""

    text: str

    @property
    def is_column(self) -> bool:
        """Whether it is a column."""
        return not self.text.lstrip().startswith(_CONSTRAINTS)

    @property
    def is_list(self) -> bool:
        """Whether it is a key of the table: a list of columns."""
        return self.text.lstrip().startswith(_LISTS)

    @property
    def name(self) -> str:
        """The column's name; of a constraint its first words."""
        words = self.text.split()
        return words[0] if self.is_column else " ".join(words[:3])

    def mentions(self, column: str) -> bool:
        """Return whether a column is named in it."""
        return bool(re.search(rf"\b{column}\b", self.text))

    def columns(self) -> list[str]:
        """Return the columns of a key of the table."""
        return self.text[self.text.index("(") + 1 : self.text.rindex(")")].split(", ")

    def of_columns(self, columns: list[str]) -> Self:
        """Return the key with other columns."""
        return replace(self, text=f"{self.text.split('(')[0]}({', '.join(columns)})")


@dataclass(frozen=True, slots=True)
class Table:
    """A table; the tail closes its parenthesis and says how it is stored."""

    name: str
    items: tuple[Item, ...]
    tail: str

    @property
    def text(self) -> str:
        """The statement that makes it."""
        body = ",".join(item.text for item in self.items)
        return f"CREATE TABLE {self.name} ({body}\n{self.tail}"

    def with_item(self, old: Item, *new: Item) -> Self:
        """Return the table with others in an item's place, or none."""
        at = self.items.index(old)
        return self._of((*self.items[:at], *new, *self.items[at + 1 :]))

    def without_column(self, column: Item) -> Self:
        """Return the table without a column, and without what needs it."""
        kept: list[Item] = []
        for item in self.items:
            if item == column:
                continue
            if item.is_column or not item.mentions(column.name):
                kept.append(item)
            elif item.is_list and (
                left := [each for each in item.columns() if each != column.name]
            ):
                kept.append(item.of_columns(left))
        return self._of(tuple(kept))

    def with_column_named(self, column: Item, name: str) -> Self:
        """Return the table with a column under another name, wherever the table names it."""
        items = (
            Item(renamed(item.text, column.name, name))
            if item == column or not item.is_column
            else item
            for item in self.items
        )
        return replace(self, items=tuple(items))

    def _of(self, items: tuple[Item, ...]) -> Self:
        """Return the table with other items; what has no key is stored by its rowid."""
        has_key = any("PRIMARY KEY" in item.text for item in items)
        tail = self.tail if has_key else self.tail.replace(WITHOUT_ROWID, "")
        return replace(self, items=items, tail=tail)


@dataclass(frozen=True, slots=True)
class Index:
    """An index; the condition is that of a partial one, with the space before it."""

    name: str
    table: str
    is_unique: bool
    columns: tuple[str, ...]
    condition: str

    @property
    def text(self) -> str:
        """The statement that makes it."""
        unique = "UNIQUE " if self.is_unique else ""
        columns = ", ".join(self.columns)
        return f"CREATE {unique}INDEX {self.name} ON {self.table} ({columns}){self.condition}"

    def mentions(self, column: str) -> bool:
        """Return whether a column is named in it."""
        return bool(re.search(rf"\b{column}\b", f"{self.columns} {self.condition}"))

    def with_column_named(self, column: str, name: str) -> Self:
        """Return the index with a column under another name."""
        columns = tuple(renamed(each, column, name) for each in self.columns)
        return replace(self, columns=columns, condition=renamed(self.condition, column, name))


def renamed(text: str, old: str, new: str) -> str:
    """Return text with a column under another name; texts and other tables' columns stay."""
    own, references, other = text.partition("REFERENCES")
    changed = re.sub(rf"'[^']*'|\b{old}\b", lambda found: found[0] if found[0] != old else new, own)
    return f"{changed}{references}{other}"


def parse(schema: str) -> tuple[tuple[Table, ...], tuple[Index, ...]]:
    """Take the DDL apart.

    Args:
        schema: Its text.

    Returns:
        Its tables and its indexes, in order.
    """
    bare = re.sub(r"^--.*\n", "", schema, flags=re.MULTILINE)
    tables: list[Table] = []
    indexes: list[Index] = []
    for statement in bare.split(";\n"):
        text = statement.strip()
        if table := _TABLE.fullmatch(text):
            tables.append(Table(table[1], tuple(_items(table[2])), table[3]))
            assert tables[-1].text == text, text
        elif index := _INDEX.fullmatch(text):
            columns = tuple(index[4].split(", "))
            indexes.append(Index(index[2], index[3], bool(index[1]), columns, index[5]))
            assert indexes[-1].text == text, text
        else:
            assert not text.startswith("CREATE"), text
    return tuple(tables), tuple(indexes)


def _items(body: str) -> Iterator[Item]:
    """Split the inside of a table's parenthesis at its own commas."""
    depth = begin = 0
    for at, character in enumerate(body):
        depth += (character == "(") - (character == ")")
        if character == "," and not depth:
            yield Item(body[begin:at])
            begin = at + 1
    yield Item(body[begin:])
