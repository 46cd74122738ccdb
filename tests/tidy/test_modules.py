"""Modules are short, have one noun, and keep the habits that no linter knows."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator

from pi_workflows.base import errors
from tests.tidy.repository import Module, module, modules

FUNCTION_LINES_MAX = 70
MODULE_LINES_MAX = 500

# A module of this name says nothing of what is in it.
_NO_NOUNS = frozenset({"common", "helper", "helpers", "misc", "util", "utils"})
_SQL = re.compile(r"\s*(?:ALTER|CREATE|DELETE|DROP|INSERT|REPLACE|SELECT|UPDATE|WITH)\s+[\w*(]")
_BEGIN = re.compile(r"\s*BEGIN\b")
# A write that begins as a read fails when it turns into one; a read says that it is one.
_BEGINNINGS = frozenset({"BEGIN IMMEDIATE", "BEGIN DEFERRED"})
# Time, chance and identities drawn at random enter before a decider runs, and stand in its event.
_PURE = ("pi_workflows/domain/", "projections/")
_EXCEPTIONS = frozenset(
    name
    for names in (vars(builtins), vars(errors))
    for name, value in names.items()
    if isinstance(value, type) and issubclass(value, BaseException)
)
_IMPURE = frozenset({"SystemClock", "now_ms", "monotonic_ns", "random_id", "random_token"})


def long_functions(each: Module) -> Iterator[str]:
    """Find functions that do not fit a screen, their docstring included."""
    for node in ast.walk(each.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > FUNCTION_LINES_MAX:
                yield f"{each.path}:{node.lineno}: {node.name} has {lines} lines"


def long_module(each: Module) -> Iterator[str]:
    """Find modules that hold more than one thing."""
    lines = each.text.count("\n")
    if lines > MODULE_LINES_MAX:
        yield f"{each.path}: {lines} lines"


def no_noun(each: Module) -> Iterator[str]:
    """Find modules and packages whose name is no noun of the product."""
    for part in each.path.removesuffix(".py").split("/"):
        if _NO_NOUNS.intersection(part.lower().split("_")):
            yield f"{each.path}: {part} says nothing"


def _texts(each: Module) -> Iterator[ast.Constant]:
    """Yield the string constants of a module that are no docstrings."""
    documentation = {id(node.value) for node in ast.walk(each.tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(each.tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in documentation
        ):
            yield node


def sql_in_python(each: Module) -> Iterator[str]:
    """Find statements that stand in Python instead of a `.sql` file."""
    for node in _texts(each):
        if each.is_product and _SQL.match(str(node.value)):
            yield f"{each.path}:{node.lineno}: SQL belongs into a .sql file"


def unclear_begin(each: Module) -> Iterator[str]:
    """Find transactions that do not say whether they write."""
    for node in _texts(each):
        if each.is_product and _BEGIN.match(str(node.value)) and node.value not in _BEGINNINGS:
            yield f"{each.path}:{node.lineno}: {node.value!r} is none of {sorted(_BEGINNINGS)}"


def impure(each: Module) -> Iterator[str]:
    """Find deciders and projectors that read a clock or draw at random."""
    if not each.path.startswith(_PURE):
        return
    for node in ast.walk(each.tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(name=name):
                if name in _IMPURE:
                    yield f"{each.path}: {name}"
            case _:
                pass


def public_error(each: Module) -> Iterator[str]:
    """Find errors for callers that stand outside the one tree of them."""
    if not each.is_product or each.path == "pi_workflows/base/errors.py":
        return
    for node in ast.walk(each.tree):
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            bases = {ast.unparse(base).rpartition(".")[2] for base in node.bases}
            # An assertion is our own mistake, which no caller handles; an exit, as of a program
            # that is told to end, is no error at all.
            if not bases <= {"AssertionError", "BaseException"} and bases & _EXCEPTIONS:
                yield f"{each.path}:{node.lineno}: {node.name} is outside the error tree"


def test_functions_fit_a_screen() -> None:
    """No function is longer than 70 lines."""
    assert [found for each in modules() for found in long_functions(each)] == []


def test_a_long_function_is_found() -> None:
    """The shortest function over the limit is found, also as a method and as a coroutine."""
    for head in ("def f():", "async def f():"):
        body = "\n".join("    pass" for _ in range(FUNCTION_LINES_MAX - 1))
        assert not list(long_functions(module("a.py", f"{head}\n{body}\n")))
        assert list(long_functions(module("a.py", f"{head}\n{body}\n    pass\n")))
    nested = "class C:\n    def f(self):\n" + "        pass\n" * FUNCTION_LINES_MAX
    assert list(long_functions(module("a.py", nested)))


def test_modules_are_short() -> None:
    """No module is longer than 500 lines."""
    assert [found for each in modules() for found in long_module(each)] == []


def test_a_long_module_is_found() -> None:
    """The shortest module over the limit is found, the longest under it is not."""
    assert not list(long_module(module("a.py", "pass\n" * MODULE_LINES_MAX)))
    assert list(long_module(module("a.py", "pass\n" * (MODULE_LINES_MAX + 1))))


def test_modules_are_named_for_what_they_hold() -> None:
    """No module and no package is a drawer."""
    assert [found for each in modules() for found in no_noun(each)] == []


def test_a_drawer_is_found() -> None:
    """Such a name is found as a file, as a folder and as a part of a longer name."""
    for path in ("a/utils.py", "a/common/b.py", "a/string_helpers.py", "misc.py"):
        assert list(no_noun(module(path, "")))
    assert not list(no_noun(module("a/commonplace.py", "")))


def test_sql_stands_in_sql_files() -> None:
    """No module of the product holds a statement that reads or writes a table."""
    assert [found for each in modules() for found in sql_in_python(each)] == []


def test_sql_in_python_is_found() -> None:
    """A statement in a constant is found, a sentence in a docstring is not."""
    path = "pi_workflows/store/a.py"
    assert list(sql_in_python(module(path, 'X = "SELECT a FROM b"\n')))
    assert list(sql_in_python(module(path, 'x.execute("""\n  UPDATE a SET b = 1""")\n')))
    assert not list(sql_in_python(module(path, '"""SELECT a row."""\n\nX = "CREATED"\n')))


def test_transactions_say_whether_they_write() -> None:
    """Every BEGIN is IMMEDIATE, or says that it only reads."""
    assert [found for each in modules() for found in unclear_begin(each)] == []


def test_an_unclear_begin_is_found() -> None:
    """A bare BEGIN is found, and so is one with a word of its own."""
    path = "pi_workflows/store/a.py"
    for text in ("BEGIN", "BEGIN TRANSACTION", "BEGIN EXCLUSIVE", "  BEGIN;"):
        assert list(unclear_begin(module(path, f"x.execute({text!r})\n")))
    assert not list(unclear_begin(module(path, 'x.execute("BEGIN IMMEDIATE")\n')))


def test_deciders_and_projectors_draw_nothing() -> None:
    """No decider and no projector reads a clock or draws an identity at random."""
    assert any(each.path.startswith(_PURE) for each in modules())
    assert [found for each in modules() for found in impure(each)] == []


def test_an_impure_decider_is_found() -> None:
    """An import, a call and an attribute are found, in these packages only."""
    for text in ("from a import SystemClock\n", "ids.random_id('x')\n", "clock.now_ms()\n"):
        assert list(impure(module("pi_workflows/domain/a.py", text)))
        assert list(impure(module("projections/viewer/a.py", text)))
        assert not list(impure(module("pi_workflows/server/a.py", text)))


def test_errors_for_callers_stand_in_one_tree() -> None:
    """Every public exception of the product is in `pi_workflows.base.errors`."""
    assert [found for each in modules() for found in public_error(each)] == []


def test_an_error_outside_the_tree_is_found() -> None:
    """A public exception elsewhere is found, a private one and a test's are not."""
    for base in ("Exception", "ValueError", "errors.Refused", "Corrupt"):
        assert list(public_error(module("pi_workflows/a.py", f"class A({base}): ...\n")))
        assert not list(public_error(module("pi_workflows/a.py", f"class _A({base}): ...\n")))
        assert not list(public_error(module("tests/a.py", f"class A({base}): ...\n")))
    for base in ("AssertionError", "BaseException"):
        bug = f"class Bug({base}): ...\n"
        assert not list(public_error(module("pi_workflows/a.py", bug)))
