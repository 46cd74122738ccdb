"""Files are plain: small, runnable where they are programs, and silent about how they were made."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator

from tests.tidy.repository import File, files, links

BLOB_BYTES_MAX = 200 * 1_024

# Names of programs that write text for people: a text here says what is, not what it was written
# with. Digests of the words in lower case, so that this file does not hold what it bans.
_TOOLS = frozenset(
    {
        "053ea4804ef1bb33d4a3d6fb024a614b6d257cebc2bc7cd915da9c9522f37ffc",
        "3ea125d0bff386e6754b3782b300016fc79a9cf8f8669c0a5c3db64467ddb681",
        "5792d2981981be5a2677cd353db6f55cd9d2779570061ae8d86176635b3cc745",
        "57de4cf40144bdf7d00010f2f5557a7d642c2b9705309bfade167dd313e2ca93",
        "5d0c0ab127fdea24d94e7e3326b6ceb965ab82ad897f9de1bd6b1a9a23f87578",
        "5d72436256ada53828b51895a94bb8489e9f1ac4fe937a8024ef1594e7045ff6",
        "60965168ce762e949600281ba6d01fee136e5b6e8257b1f216f9025ed324474c",
        "67f2d22514622d1be30c14ee9f3cb104503a159a33a656ca91a1953aa9616429",
        "6f7ac1823da81d2e52d1a1549ee69c85bbf8bb56d06682849e7c09da2785ce3b",
        "7d3194f79e645c42e4396dda38be04766810ec6a00d00aced3ffc2a0a1f1a9ef",
        "920510199770f4d65cb8aaa2cd12bdb2b8c37f5b3907c50a734a0e3409da2823",
        "add92b9cde2bdbf3daaf65a0db79e9b1a7fa428b71b4d6ce38c742eb6dca0c1c",
        "c70eca6b0f88f44d81a41311647e50fda1ac454ec04ffd442b0eb4743a993131",
        "c857d09db23e6822e3600bc06ad8d58f92ed62bc8efd81c753f77048662cb97d",
        "ebde709e306badca2f843f1ef91c7fb216a99aa4417b32fe911e15acfff8bedd",
        "fc5a1047f5919892fcdf8aa79ea5d6bb6531b5c176939ef0110906cb225941c1",
    }
)
_WORD = re.compile(r"[A-Za-z]+")
# A protocol that programs speak has the name that it has, and so have packages that others wrote.
_PROTOCOL = re.compile(r"\b[a-z]+-completions\b")
_FOREIGN = "package-lock.json"
_UNFINISHED = re.compile(r"\b(?:FIXM[E]|TOD[O]|XX[X])\b")  # brackets: no match here
# Papers that lie beside the repository: whoever reads it has only what is in it.
_ELSEWHERE = re.compile(
    r"\.\./share[d]|/wor[k]/|\bshare[d]/(?:contract|design|seeds|hooks)|\bissue #?\d+\b",
    re.IGNORECASE,
)
_PAPER = re.compile(r"\b([a-z][a-z-]*)\.md\b")
_PAPERS = frozenset(
    {"architecture", "cli", "decisions", "engine", "models", "performance", "pi-client", "protocol"}
    | {"reliability", "runner", "state", "viewer-ux"}
)
# The one place where the outside may be named: a corpus that is used when it is there.
_CORPUS = (".ci/run", "pi-sessions")


def _lines(file: File) -> Iterator[tuple[int, str]]:
    """Yield the lines of a text file with their numbers; nothing for another file."""
    yield from enumerate((file.text or "").split("\n"), 1)


def untidy_lines(file: File) -> Iterator[str]:
    """Find trailing white space, carriage returns and a missing last line break."""
    if file.text is None or "__snapshots__" in file.path:
        return
    for number, line in _lines(file):
        if line != line.rstrip():
            yield f"{file.path}:{number}: white space at the end"
    if file.text and not file.text.endswith("\n"):
        yield f"{file.path}: no line break at the end"
    if file.text.endswith("\n\n"):
        yield f"{file.path}: empty lines at the end"


def unfinished(file: File) -> Iterator[str]:
    """Find notes that say that something is not done."""
    for number, line in _lines(file):
        if _UNFINISHED.search(line):
            yield f"{file.path}:{number}: unfinished: {line.strip()}"


def making_of(file: File) -> Iterator[str]:
    """Find mentions of the tools that a text was written with."""
    if file.name == _FOREIGN:
        return
    for number, line in _lines(file):
        for word in _WORD.findall(_PROTOCOL.sub("", line)):
            if hashlib.sha256(word.lower().encode()).hexdigest() in _TOOLS:
                yield f"{file.path}:{number}: {word}"


def elsewhere(file: File, names: Iterable[str]) -> Iterator[str]:
    """Find mentions of papers and places that a clone of the repository does not have.

    Args:
        file: The file.
        names: The names of the files of the repository.
    """
    missing = _PAPERS - {name.removesuffix(".md") for name in names}
    path, corpus = _CORPUS
    for number, line in _lines(file):
        if file.path == path and corpus in line:
            continue
        papers = missing.intersection(_PAPER.findall(line))
        if papers or _ELSEWHERE.search(line):
            yield f"{file.path}:{number}: not in the repository: {line.strip()}"


def wrong_mode(file: File) -> Iterator[str]:
    """Find programs that cannot be run, and files that can but are none."""
    is_program = file.content.startswith(b"#!")
    if is_program != file.is_executable:
        yield f"{file.path}: {'a program without' if is_program else 'no program but with'} mode x"


def large_blob(file: File) -> Iterator[str]:
    """Find large files that are no text."""
    if file.text is None and len(file.content) > BLOB_BYTES_MAX:
        yield f"{file.path}: {len(file.content)} bytes that are no text"


def test_lines_are_tidy() -> None:
    """Every line ends in its last letter, every text in one line break."""
    assert [found for file in files() for found in untidy_lines(file)] == []


def test_untidy_lines_are_found() -> None:
    """White space at an end is found, be it a space, a tab or a carriage return."""
    sample = File("a.py", b"good\nspace \ntab\t\nreturn\r\n\n\n")
    assert len(list(untidy_lines(sample))) == 4
    assert list(untidy_lines(File("a.py", b"x"))) == ["a.py: no line break at the end"]


def test_nothing_is_unfinished() -> None:
    """No note in the repository says that something is still to be done."""
    assert [found for file in files() for found in unfinished(file)] == []


def test_unfinished_notes_are_found() -> None:
    """Each of the three marks is found, alone and in a comment."""
    for mark in ("FIX" + "ME", "TO" + "DO", "XX" + "X"):
        assert list(unfinished(File("a.sql", f"-- {mark}: later\n".encode())))
    assert not list(unfinished(File("a.py", b"todos = []\n")))


def test_no_text_says_what_it_was_written_with() -> None:
    """No file names a program that writes text for people."""
    assert [found for file in files() for found in making_of(file)] == []


def test_a_mention_of_a_tool_is_found() -> None:
    """A banned word is found whatever its case and whatever stands beside it."""
    reversed_words = ("edualc", "tpgtahc", "tolipoc")
    for word in reversed_words:
        sample = f"made with {word[::-1].title()}-5.\n"
        assert list(making_of(File("a.md", sample.encode())))
        assert not list(making_of(File("a/package-lock.json", sample.encode())))
    assert not list(making_of(File("a.md", b"a cursor reads rows\n")))
    protocol = f"api: {'ianepo'[::-1]}-completions\n"
    assert not list(making_of(File("a.md", protocol.encode())))


def test_texts_name_nothing_outside_the_repository() -> None:
    """Everything that a text points at can be found by whoever has the clone."""
    names = [file.name for file in files()]
    assert [found for file in files() for found in elsewhere(file, names)] == []


def test_mentions_of_the_outside_are_found() -> None:
    """Paths beside the repository and papers that it does not have are found, but not its own."""
    for text in ("../sha" + "red/x", "see deci" + "sions.md", "issue " + "7", "/wo" + "rk/x"):
        assert list(elsewhere(File("a.md", f"{text}\n".encode()), ["README.md"]))
    own = "proto" + "col.md"
    assert not list(elsewhere(File("a.md", f"see {own}\n".encode()), [own]))
    corpus = f"if [[ -d ../sha{'red'}/pi-sessions ]]\n".encode()
    assert not list(elsewhere(File(".ci/run", corpus), []))
    assert list(elsewhere(File("scripts/test", corpus), []))


def test_programs_can_be_run_and_nothing_else_can() -> None:
    """A file is executable exactly when it says what runs it; none is a link."""
    assert [found for file in files() for found in wrong_mode(file)] == []
    assert links() == []


def test_a_wrong_mode_is_found() -> None:
    """Both wrong combinations are found."""
    assert list(wrong_mode(File("scripts/x", b"#!/bin/sh\n", is_executable=False)))
    assert list(wrong_mode(File("x.py", b"import os\n", is_executable=True)))


def test_no_file_is_a_large_blob() -> None:
    """Whatever is not text is small."""
    assert [found for file in files() for found in large_blob(file)] == []


def test_a_large_blob_is_found() -> None:
    """The smallest blob over the limit is found, the largest under it is not."""
    assert list(large_blob(File("x.bin", b"\xff" * (BLOB_BYTES_MAX + 1))))
    assert not list(large_blob(File("x.bin", b"\xff" * BLOB_BYTES_MAX)))
    assert not list(large_blob(File("x.txt", b"a" * (BLOB_BYTES_MAX + 1))))
