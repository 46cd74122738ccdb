"""A database, or what stands in its place, for each hostile case that is a file or beside one.

The cases are those of the state contract, section 8, by number. Each says what must come of it: of
the start of a server, of a look into the file while no server has it, or of a backup to it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pi_workflows.store.driver import Connection, connect

MAIN: Final = "state.sqlite"
OPENS: Final = "opens"
_REFUSED: Final = "stateIncompatible"
_CORRUPT: Final = "stateCorrupt"
_INCOMPLETE: Final = "notSelfContained"
_PAGE_BYTES: Final = 4_096
_FORCE = True

Make = Callable[[Path, Path], Path]


@dataclass(frozen=True, slots=True)
class Specimen:
    """A hostile case as files.

    Attributes:
        number: The case's number.
        name: What sets it apart from the others.
        make: Fills a new directory from a sound database, which is copied and left alone. Returns
            the path that is tried.
        live: What becomes of a server that is started on the path's directory: the code of the
            refusal, `opens`, or nothing when the case is another one.
        offline: The same of a look into the file.
        backup: The same of a backup from the live database in `state/` to the path.
    """

    number: int
    name: str
    make: Make
    live: str = ""
    offline: str = ""
    backup: str = ""


def text_file(_base: Path, directory: Path) -> Path:
    """Put a text where the database should be."""
    (directory / MAIN).write_bytes(b"hello, this is a text file\n" * 500)
    return directory / MAIN


def magic_alone(_base: Path, directory: Path) -> Path:
    """Put a file there that only begins as a database does."""
    (directory / MAIN).write_bytes(b"SQLite format 3\x00" + b"\xa5" * 9_000)
    return directory / MAIN


def empty_file(_base: Path, directory: Path) -> Path:
    """Put a file of no bytes there, which SQLite takes for a new database."""
    (directory / MAIN).touch()
    return directory / MAIN


def corrupt_page(base: Path, directory: Path) -> Path:
    """Overwrite a page inside the file that belongs to an index without rows."""
    path = _copied(base, directory)
    connection = connect(str(path))
    page = connection.execute(
        "SELECT rootpage FROM sqlite_schema WHERE name = 'channel_messages_channel_id'"
    ).get
    connection.close()
    assert isinstance(page, int)
    with path.open("r+b") as file:
        file.seek((page - 1) * _PAGE_BYTES)
        file.write(b"\xff" * _PAGE_BYTES)
    return path


def truncated(share: float) -> Make:
    """Return what keeps so much of the file only."""

    def make(base: Path, directory: Path) -> Path:
        path = _copied(base, directory)
        os.truncate(path, int(path.stat().st_size * share))
        return path

    return make


def crashed(base: Path, directory: Path) -> Path:
    """Leave a database as a killed server does: three commits in the log, none in the file.

    Each commit raises two numbers by one, so that half of one shows.
    """
    source = directory / "source"
    source.mkdir()
    connection = connect(str(_copied(base, source)))
    connection.pragma("journal_mode", "WAL")
    connection.wal_autocheckpoint(0)
    for _ in range(3):
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("UPDATE workflow_host_state SET epoch = epoch + 1")
        connection.execute("UPDATE schema_meta SET updated_at = updated_at + 1")
        connection.execute("COMMIT")
    return _cut_off(connection, source, "-wal")


def torn_log(keep: Callable[[int], int]) -> Make:
    """Return what keeps a part of a killed server's log only.

    Args:
        keep: Of so many bytes so many.
    """

    def make(base: Path, directory: Path) -> Path:
        path = crashed(base, directory)
        wal = path.with_name(f"{MAIN}-wal")
        os.truncate(wal, keep(wal.stat().st_size))
        return path

    return make


def flipped_frame(offset: int) -> Make:
    """Return what changes one bit of a killed server's log, counted from its end when negative."""

    def make(base: Path, directory: Path) -> Path:
        path = crashed(base, directory)
        wal = path.with_name(f"{MAIN}-wal")
        data = bytearray(wal.read_bytes())
        data[offset] ^= 0x40
        wal.write_bytes(data)
        return path

    return make


def log_alone(suffix: str) -> Make:
    """Return what leaves a killed server's log without its database."""

    def make(base: Path, directory: Path) -> Path:
        path = crashed(base, directory)
        path.with_name(f"{MAIN}-wal").rename(path.with_name(f"{MAIN}{suffix}"))
        path.unlink()
        return path

    return make


def foreign_log(base: Path, directory: Path) -> Path:
    """Put another time's log beside a database that was closed in order."""
    path = crashed(base, directory)
    shutil.copyfile(base, path)
    return path


def changed(*statements: str, has_wal: bool = False) -> Make:
    """Return what runs statements on a closed database.

    Args:
        statements: One statement each.
        has_wal: Leave the file in write-ahead mode, with nothing beside it.
    """

    def make(base: Path, directory: Path) -> Path:
        path = _copied(base, directory)
        connection = connect(str(path))
        for statement in statements:
            connection.execute(statement).fetchall()
        if has_wal:
            connection.pragma("journal_mode", "WAL")
        connection.close()
        return path

    return make


def disguised(kind: str, sql: str) -> Make:
    """Return what hides a schema object behind a name that is SQLite's own.

    Args:
        kind: Of object.
        sql: What makes it, with `NAME` for its name.
    """
    name = "sqlite_statistics"
    return changed(
        sql.replace("NAME", "disguise"),
        "PRAGMA writable_schema = ON",
        f"UPDATE sqlite_schema SET name = '{name}', sql = replace(sql, 'disguise', '{name}') "
        f"WHERE type = '{kind}' AND name = 'disguise'",
    )


def hot_journal(base: Path, directory: Path) -> Path:
    """Leave a stranger's file with the rollback journal of a transaction that was cut off."""
    source = directory / "source"
    source.mkdir()
    path = _copied(base, source)
    connection = connect(str(path))
    connection.execute("CREATE TABLE stranger (a)")
    connection.pragma("cache_size", 5)
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("""
        WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 5000)
        INSERT INTO stranger SELECT hex(randomblob(200)) FROM n
    """)
    return _cut_off(connection, source, "-journal")


def link(base: Path, directory: Path) -> Path:
    """Let a symbolic link lead to a database that lies elsewhere."""
    elsewhere = directory / "elsewhere"
    elsewhere.mkdir()
    (directory / MAIN).symlink_to(_copied(base, elsewhere))
    return directory / MAIN


def dangling_link(_base: Path, directory: Path) -> Path:
    """Let a symbolic link lead nowhere."""
    (directory / MAIN).symlink_to("nowhere")
    return directory / MAIN


def second_name(base: Path, directory: Path) -> Path:
    """Give the file a second name."""
    os.link(_copied(base, directory), directory / "second.sqlite")
    return directory / MAIN


def folder(_base: Path, directory: Path) -> Path:
    """Put a directory there."""
    (directory / MAIN).mkdir()
    return directory / MAIN


def pipe(_base: Path, directory: Path) -> Path:
    """Put a pipe there, which whoever opens it waits at."""
    os.mkfifo(directory / MAIN)
    return directory / MAIN


def loose_mode(base: Path, directory: Path) -> Path:
    """Let everybody read the file."""
    path = _copied(base, directory)
    path.chmod(0o644)
    return path


def foreign_owner(base: Path, directory: Path) -> Path:
    """Give the file to another user. Raises PermissionError unless root makes it."""
    path = _copied(base, directory)
    os.chown(path, 12_345, -1)
    return path


def target(occupy: Callable[[Path], object]) -> Make:
    """Return what puts something where a backup should go."""

    def make(base: Path, directory: Path) -> Path:
        _installed(base, directory)
        path = directory / "backup.sqlite"
        occupy(path)
        return path

    return make


def live_file(suffix: str) -> Make:
    """Return what names the live database, or a file of it, by a link to its directory."""

    def make(base: Path, directory: Path) -> Path:
        state = _installed(base, directory).parent
        (directory / "link").symlink_to(state)
        return directory / "link" / f"{MAIN}{suffix}"

    return make


def lead(way: Callable[[Path, Path], Path]) -> Make:
    """Return what makes another way to the live database.

    Args:
        way: Makes it at a place that is free, and returns the path that leads to the file.
    """

    def make(base: Path, directory: Path) -> Path:
        return way(_installed(base, directory), directory / "place")

    return make


def by_link(live: Path, place: Path) -> Path:
    """Lead to the file by a symbolic link."""
    place.symlink_to(live)
    return place


def by_directory(live: Path, place: Path) -> Path:
    """Lead to the file by a link to its directory."""
    place.symlink_to(live.parent)
    return place / live.name


def by_name(live: Path, place: Path) -> Path:
    """Give the file a second name."""
    os.link(live, place)
    return place


def by_detour(live: Path, place: Path) -> Path:
    """Lead to the file over another directory."""
    place.mkdir()
    return place / ".." / live.parent.name / live.name


def read_only(base: Path, directory: Path) -> Path:
    """Put a backup where nobody may write."""
    place = directory / "place"
    place.mkdir()
    path = place / "backup.sqlite"
    shutil.copyfile(base, path)
    path.chmod(0o444)
    place.chmod(0o555)
    return path


def stale_lock(base: Path, directory: Path) -> Path:
    """Leave the lock file of a server that was killed, with the number of its process."""
    path = _installed(base, directory)
    (path.parent / "host").mkdir(mode=0o700)
    ended = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True
    )
    lock = path.parent / "host" / "host.lock"
    lock.write_bytes(ended.stdout.strip())
    lock.chmod(0o600)
    return path


def _copied(base: Path, directory: Path) -> Path:
    """Copy the sound database to where a server looks for its own."""
    path = directory / MAIN
    shutil.copyfile(base, path)
    path.chmod(0o600)
    return path


def _installed(base: Path, directory: Path) -> Path:
    """Copy the sound database into a state directory of its own, beside which there is room."""
    state = directory / "state"
    state.mkdir(mode=0o700)
    return _copied(base, state)


def _cut_off(connection: Connection, source: Path, suffix: str) -> Path:
    """Take a database and the file beside it from under a connection, as a crash leaves them."""
    directory = source.parent
    for name in (MAIN, f"{MAIN}{suffix}"):
        shutil.copyfile(source / name, directory / name)
        (directory / name).chmod(0o600)
    connection.close(_FORCE)
    shutil.rmtree(source)
    return directory / MAIN


def _mine(path: Path) -> None:
    path.write_bytes(b"mine")


SPECIMENS: Final = (
    Specimen(1, "text", text_file, _REFUSED, _REFUSED),
    Specimen(1, "magic-alone", magic_alone, _REFUSED, _REFUSED),
    Specimen(2, "empty", empty_file, _REFUSED, _REFUSED),
    Specimen(3, "corrupt-page", corrupt_page, OPENS, OPENS),
    Specimen(4, "half", truncated(0.5), _CORRUPT, _CORRUPT),
    Specimen(4, "few-pages", truncated(0.02), _CORRUPT, _CORRUPT),
    Specimen(4, "uneven", truncated(0.7531), _CORRUPT, _CORRUPT),
    Specimen(5, "log-tail-cut", torn_log(lambda size: size - 100), OPENS, _INCOMPLETE),
    Specimen(5, "log-half-cut", torn_log(lambda size: size // 2), OPENS, _INCOMPLETE),
    Specimen(5, "log-header-cut", torn_log(lambda _size: 20), OPENS, _INCOMPLETE),
    Specimen(6, "last-frame-flipped", flipped_frame(-10), OPENS, _INCOMPLETE),
    Specimen(6, "first-frame-flipped", flipped_frame(100), OPENS, _INCOMPLETE),
    Specimen(7, "log-alone", log_alone("-wal"), _REFUSED, "fileMissing"),
    Specimen(7, "journal-alone", log_alone("-journal"), _REFUSED, "fileMissing"),
    Specimen(7, "log-of-another-time", foreign_log, _REFUSED, _INCOMPLETE),
    Specimen(8, "application", changed("PRAGMA application_id = 7"), _REFUSED, _REFUSED),
    Specimen(
        8, "application-wal", changed("PRAGMA application_id = 7", has_wal=True), _REFUSED, _REFUSED
    ),
    Specimen(8, "version", changed("PRAGMA user_version = 2"), _REFUSED, _REFUSED),
    Specimen(
        8, "version-wal", changed("PRAGMA user_version = 2", has_wal=True), _REFUSED, _REFUSED
    ),
    Specimen(9, "foreign-shape", changed("DROP INDEX runs_status"), _REFUSED, _REFUSED),
    Specimen(
        9,
        "foreign-digest",
        changed("UPDATE schema_meta SET schema_digest = zeroblob(32)"),
        _REFUSED,
        _REFUSED,
    ),
    Specimen(10, "table", changed("CREATE TABLE sqlitexevil (a)"), _REFUSED, _REFUSED),
    Specimen(10, "view", changed("CREATE VIEW v AS SELECT 1"), _REFUSED, _REFUSED),
    Specimen(
        10,
        "trigger",
        changed("CREATE TRIGGER t AFTER INSERT ON runs BEGIN SELECT 1; END"),
        _REFUSED,
        _REFUSED,
    ),
    Specimen(
        10,
        "disguised-trigger",
        disguised("trigger", "CREATE TRIGGER NAME AFTER INSERT ON runs BEGIN SELECT 1; END"),
        _REFUSED,
        _REFUSED,
    ),
    Specimen(
        10,
        "disguised-view",
        disguised("view", "CREATE VIEW NAME AS SELECT 1"),
        _CORRUPT,
        _CORRUPT,
    ),
    Specimen(11, "hot-journal", hot_journal, _REFUSED, _INCOMPLETE),
    Specimen(12, "link", link, _REFUSED, OPENS),
    Specimen(12, "dangling-link", dangling_link, _REFUSED, "fileMissing"),
    Specimen(12, "second-name", second_name, _REFUSED, OPENS),
    Specimen(12, "directory", folder, _REFUSED, "notRegularFile"),
    Specimen(12, "pipe", pipe, _REFUSED, "notRegularFile"),
    Specimen(13, "loose-mode", loose_mode, OPENS, OPENS),
    Specimen(13, "foreign-owner", foreign_owner, _REFUSED, OPENS),
    Specimen(19, "file", target(_mine), backup="targetExists"),
    Specimen(19, "directory", target(Path.mkdir), backup="targetExists"),
    Specimen(
        19, "dangling-link", target(lambda path: path.symlink_to("nowhere")), backup="targetExists"
    ),
    Specimen(20, "live", live_file(""), backup="targetLive"),
    Specimen(20, "live-log", live_file("-wal"), backup="targetLive"),
    Specimen(24, "link", lead(by_link), offline="liveFile"),
    Specimen(24, "directory-link", lead(by_directory), offline="liveFile"),
    Specimen(24, "second-name", lead(by_name), offline="liveFile"),
    Specimen(24, "relative", lead(by_detour), offline="liveFile"),
    Specimen(25, "read-only", read_only, offline=OPENS),
    Specimen(28, "stale-lock", stale_lock, OPENS),
)
