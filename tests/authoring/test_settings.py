"""Settings as authors declare them: what is wrong with them, and what they accept."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, Field

from pi_workflows import (
    Context,
    Json,
    ProblemsFound,
    SettingsChange,
    allow,
    compute,
    define_workflow,
    settings_route,
    workflow_settings,
)
from pi_workflows.definition.digest import definition_digest


class Input(BaseModel):
    """The input."""


class Prefs(BaseModel):
    """The settings."""

    merge: bool = False
    names: list[str] = Field(default=[], max_length=2)


def no_true(change: SettingsChange[Prefs]) -> None:
    """Refuse what a model may not do."""
    if change.actor == "session" and change.after.merge:
        raise ValueError("not by a model")


SETTINGS = workflow_settings(
    Prefs,
    initial=lambda _: Prefs(),
    paths=[allow("/merge", replace=["human"]), allow("/names", add=["control"])],
    validate_change=no_true,
)


def define(**changes: Any) -> Any:
    """Define a workflow with settings."""
    nodes = changes.pop("nodes", {"one": compute(lambda ctx: ctx.run_id)})
    given: dict[str, Any] = {"settings": SETTINGS, **changes}
    return define_workflow(name="sample", input=Input, start="one", nodes=nodes, **given)


def codes(**changes: Any) -> list[str]:
    """Return what is wrong with a definition."""
    with pytest.raises(ProblemsFound) as found:
        define(**changes)
    return [problem.code for problem in found.value.problems]


def test_the_rules_are_part_of_the_definition() -> None:
    """They stand in the snapshot, and another rule is another digest."""
    workflow = define()
    assert workflow.snapshot.document()["settings"] == [
        {
            "mount": "",
            "model": f"{__name__}.Prefs",
            "paths": [
                {"pointer": "/merge", "read": [], "add": [], "remove": [], "replace": ["human"]},
                {"pointer": "/names", "read": [], "add": ["control"], "remove": [], "replace": []},
            ],
        }
    ]
    other = workflow_settings(Prefs, initial=lambda _: Prefs(), paths=[allow("/merge")])
    digest = definition_digest(define(settings=other).snapshot)
    assert digest != definition_digest(workflow.snapshot)
    assert "settings" not in define(settings=None).snapshot.document()


def test_a_route_is_marked() -> None:
    """A compute node that chooses by the settings says so."""

    @settings_route
    def one(ctx: Context[Input]) -> bool:
        return bool(ctx.settings.merge)

    node = define(nodes={"one": one}).snapshot.nodes["one"]
    assert (node.type, node.settings_route) == ("compute", True)
    assert codes(nodes={"one": one}, settings=None) == ["settingsMissing"]


def test_everything_wrong_is_told_at_once() -> None:
    """Pointers, actors, the model, the functions."""
    broken: Any = workflow_settings
    bad: Any = allow
    settings = broken(
        Prefs,
        initial="no function",
        paths=[bad("merge"), bad("/a", replace=["nobody"]), bad("/b", read="human"), "/c"],
    )
    assert codes(settings=settings) == [
        "settingsPointerInvalid",
        "settingsActorUnknown",
        "settingsActorUnknown",
        "callbackInvalid",
        "settingsPathInvalid",
    ]
    assert codes(settings="none") == ["settingsInvalid"]
    assert codes(settings=broken(dict, initial=dict)) == ["settingsNotModel"]
    twice = workflow_settings(Prefs, initial=lambda _: Prefs(), paths=[allow("/a"), allow("/a")])
    assert codes(settings=twice) == ["settingsPointerRepeated"]


def test_a_change_is_taken_as_it_is_or_not_at_all() -> None:
    """The model may refuse a value, the author may, and neither may change it."""
    before: dict[str, Json] = {"merge": False, "names": []}
    after: dict[str, Json] = {"merge": True, "names": ["a"]}
    refusals: list[Json] = [
        {**after, "names": ["a", "b", "c"]},
        {**after, "x": 1},
        {**after, "merge": "yes"},
        {"merge": True},
    ]
    assert SETTINGS.accept_change(before, after, "human") == after
    with pytest.raises(ValueError, match="not by a model"):
        SETTINGS.accept_change(before, after, "session")
    for refused in refusals:
        with pytest.raises(ProblemsFound) as found:
            SETTINGS.accept_change(before, refused, "human")
        assert {problem.code for problem in found.value.problems} == {"settingsInvalid"}


def test_the_first_value_fits_the_model() -> None:
    """What `initial` made is stored as the model dumps it."""
    assert SETTINGS.initial_json(Prefs(merge=True)) == {"merge": True, "names": []}
    with pytest.raises(ProblemsFound):
        SETTINGS.initial_json({"merge": "perhaps"})
