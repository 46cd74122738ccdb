"""A map of a database file: what every byte of it is for.

Written from the description of SQLite's file format alone, so that what the product reads through
SQLite is judged by something that does not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

Part: TypeAlias = Literal[
    "file header", "page header", "pointers", "cell header", "record header", "value", "free space"
]
Value: TypeAlias = int | str | bytes | None
"""What a record holds; a text that is no UTF-8 stays bytes, and there are no fractions."""

_HEADER_BYTES: Final = 100
_INTERIOR_INDEX, _INTERIOR_TABLE, _LEAF_INDEX, _LEAF_TABLE = 2, 5, 10, 13
_INTEGER_BYTES: Final = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8, 7: 8}
# From here on an even type is bytes, an odd one text, and its length follows from it.
_FIRST_BYTES: Final = 12
_VARINT_BYTES_MAX: Final = 9


class BrokenFileError(Exception):
    """The file is not as the format says."""


class Cell(NamedTuple):
    """An entry of a b-tree.

    Attributes:
        tree: Its table or index.
        page: The page that it is on, from 1.
        offset: Where it begins in the file.
        serials: The types of its values, which stand in its record's header; none in an inner page
            of a table.
    """

    tree: str
    page: int
    offset: int
    serials: tuple[int, ...] = ()


class Place(NamedTuple):
    """What a byte is for.

    Attributes:
        part: What it is a part of.
        tree: The table or index that it belongs to; empty where it belongs to none.
        cell: The entry that it belongs to; None outside of entries.
        column: Which value of the entry it says something about, from 0; None where about none.
    """

    part: Part
    tree: str = ""
    cell: Cell | None = None
    column: int | None = None


class _Record(NamedTuple):
    """Where the record of an entry lies, and how it begins.

    Attributes:
        where: The file offset of each of its bytes.
        pages: The overflow pages that it goes on in.
        header_bytes: How long its header is.
        serials: The types of its values, each with where it stands in the header.
    """

    where: Sequence[int]
    pages: Sequence[int]
    header_bytes: int
    serials: Sequence[tuple[int, range]]


class FileMap:
    """A database, byte by byte.

    Attributes:
        places: What each byte is for.
        trees: The name of each table and index with its first page.
    """

    def __init__(self, data: bytes) -> None:
        """Read a file. Raises BrokenFileError when it is not sound."""
        self._data = data
        self.page_bytes = int.from_bytes(data[16:18]) or 65_536
        if self.page_bytes == 1:
            self.page_bytes = 65_536
        self._usable_bytes = self.page_bytes - data[20]
        self.places: list[Place] = [Place("free space")] * len(data)
        self._fill(range(_HEADER_BYTES), Place("file header"))
        self.trees = {"sqlite_schema": 1}
        for cell in self._tree("sqlite_schema", 1):
            _kind, name, _table, root, _sql = self.row(data, cell)
            if isinstance(root, int) and root:
                self.trees[str(name)] = root
        for name, root in self.trees.items():
            for _ in self._tree(name, root):
                pass

    def row(self, data: bytes, cell: Cell) -> list[Value]:
        """Return the values of an entry as they stand in this file, or in one that was damaged.

        Raises:
            BrokenFileError: The entry cannot be read.
        """
        page_type = _at(data, self._page_header(cell.page))
        record = self._record(data, cell.offset, page_type)
        content = bytes(_at(data, offset) for offset in record.where)
        values: list[Value] = []
        begin = record.header_bytes
        for serial, _ in record.serials:
            end = begin + _value_bytes(serial)
            if end > len(content):
                raise BrokenFileError("a value behind its record's end")
            values.append(_value(serial, content[begin:end]))
            begin = end
        return values

    # --- trees -----------------------------------------------------------------------------------

    def _tree(self, name: str, page: int) -> Iterator[Cell]:
        """Map a tree, and yield the entries of its leaves, and of inner pages if they have rows."""
        data = self._data
        header = self._page_header(page)
        page_type = _at(data, header)
        is_inner = page_type in (_INTERIOR_INDEX, _INTERIOR_TABLE)
        header_bytes = 12 if is_inner else 8
        begin = (page - 1) * self.page_bytes
        count = int.from_bytes(data[header + 3 : header + 5])
        pointers = range(header + header_bytes, header + header_bytes + 2 * count)
        self._fill(range(begin, begin + self.page_bytes), Place("free space", name), is_first=True)
        self._fill(range(header, header + header_bytes), Place("page header", name))
        self._fill(pointers, Place("pointers", name))
        children = [int.from_bytes(data[header + 8 : header + 12])] if is_inner else []
        for pointer in pointers[::2]:
            offset = begin + int.from_bytes(data[pointer : pointer + 2])
            if is_inner:
                children.append(int.from_bytes(data[offset : offset + 4]))
            if page_type == _INTERIOR_TABLE:
                _key, length = _varint(data, offset + 4)
                cell = Cell(name, page, offset)
                self._fill(range(offset, offset + 4 + length), Place("cell header", name, cell))
            else:
                yield self._entry(name, page, offset, page_type)
        for child in children:
            yield from self._tree(name, child)

    def _entry(self, name: str, page: int, offset: int, page_type: int) -> Cell:
        """Map an entry that has a record."""
        record = self._record(self._data, offset, page_type)
        serials = tuple(serial for serial, _ in record.serials)
        cell = Cell(name, page, offset, serials)
        header = Place("cell header", name, cell)
        local = next(
            (
                at
                for at, place in enumerate(record.where)
                if at and place != record.where[at - 1] + 1
            ),
            len(record.where),
        )
        last = record.where[local - 1] + 1
        self._fill(range(offset, last + (4 if record.pages else 0)), header)
        for each in record.pages:
            begin = (each - 1) * self.page_bytes
            self._fill(range(begin, begin + self.page_bytes), Place("free space", name))
            self._fill(range(begin, begin + 4), header)
        for at in range(record.header_bytes):
            self.places[record.where[at]] = Place("record header", name, cell)
        begin = record.header_bytes
        for column, (serial, where) in enumerate(record.serials):
            for at in where:
                self.places[record.where[at]] = Place("record header", name, cell, column)
            value = Place("value", name, cell, column)
            for at in range(begin, begin + _value_bytes(serial)):
                self.places[record.where[at]] = value
            begin += _value_bytes(serial)
        return cell

    # --- records ---------------------------------------------------------------------------------

    def _record(self, data: bytes, offset: int, page_type: int) -> _Record:
        """Find the record of an entry."""
        if page_type == _INTERIOR_INDEX:
            offset += 4
        size, length = _varint(data, offset)
        offset += length
        if page_type == _LEAF_TABLE:
            offset += _varint(data, offset)[1]
        local = self._local_bytes(size, is_table=page_type == _LEAF_TABLE)
        where = [*range(offset, offset + local)]
        pages: list[int] = []
        following = offset + local
        while len(where) < size:
            page = int.from_bytes(data[following : following + 4])
            if not 1 < page <= len(data) // self.page_bytes or page in pages:
                raise BrokenFileError(f"no overflow page {page}")
            pages.append(page)
            following = (page - 1) * self.page_bytes
            room = min(self._usable_bytes - 4, size - len(where))
            where.extend(range(following + 4, following + 4 + room))
        return _Record(where, pages, *_types(data, where))

    def _local_bytes(self, size: int, *, is_table: bool) -> int:
        """Return how many bytes of a record lie in its page (the format, "cell payload")."""
        usable = self._usable_bytes
        most = usable - 35 if is_table else (usable - 12) * 64 // 255 - 23
        if size <= most:
            return size
        least = (usable - 12) * 32 // 255 - 23
        kept = least + (size - least) % (usable - 4)
        return kept if kept <= most else least

    def _page_header(self, page: int) -> int:
        """Return where the header of a page begins."""
        return _HEADER_BYTES if page == 1 else (page - 1) * self.page_bytes

    def _fill(self, where: range, place: Place, *, is_first: bool = False) -> None:
        """Say what bytes are for; those of the file's header stay as they are."""
        begin = max(where.start, _HEADER_BYTES) if is_first else where.start
        self.places[begin : where.stop] = [place] * (where.stop - begin)


def _types(data: bytes, where: Sequence[int]) -> tuple[int, list[tuple[int, range]]]:
    """Return the length of a record's header, and the types in it with where they stand."""
    content = bytes(_at(data, offset) for offset in where[: 4 * _VARINT_BYTES_MAX])
    header_bytes, at = _varint(content, 0)
    if header_bytes > len(where):
        raise BrokenFileError("a header longer than its record")
    content = bytes(_at(data, offset) for offset in where[:header_bytes])
    serials: list[tuple[int, range]] = []
    while at < header_bytes:
        serial, length = _varint(content, at)
        serials.append((serial, range(at, at + length)))
        at += length
    return header_bytes, serials


def _at(data: bytes, offset: int) -> int:
    """Return a byte. Raises BrokenFileError where there is none."""
    if not 0 <= offset < len(data):
        raise BrokenFileError(f"nothing at {offset}")
    return data[offset]


def _varint(data: bytes, offset: int) -> tuple[int, int]:
    """Return an integer of variable length, and how many bytes it takes."""
    value = 0
    for length in range(1, _VARINT_BYTES_MAX):
        byte = _at(data, offset + length - 1)
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, length
    return value << 8 | _at(data, offset + 8), _VARINT_BYTES_MAX


def _value_bytes(serial: int) -> int:
    """Return how many bytes a value of a type takes."""
    if serial >= _FIRST_BYTES:
        return (serial - _FIRST_BYTES) // 2
    return _INTEGER_BYTES.get(serial, 0)


def _value(serial: int, content: bytes) -> Value:
    """Return a value; the reserved types 10 and 11 are read as NULL."""
    if serial in _INTEGER_BYTES:
        return int.from_bytes(content, signed=True)
    if serial in (8, 9):
        return serial - 8
    if serial < _FIRST_BYTES:
        return None
    if serial % 2 == 0:
        return content
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content
