"""A run as a picture of lines: what it is called, where it stands, and its graph node by node.

Lines are made of spans, a text with a style, so that the same picture stands on a terminal and in a
pipe. Every text is safe to show.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from pi_workflows.base.canonical import Json
from pi_workflows.cli.escaping import escaped
from pi_workflows.cli.measures import duration, plural
from pi_workflows.cli.outline import value_line
from pi_workflows.cli.output import Line, Span
from pi_workflows.cli.progress import progress_line
from pi_workflows.cli.run_view import GraphStep, RunView, TraceItem

_SPINNER: Final = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_NAME_CHARS_MAX: Final = 40
_NAME_CHARS_MIN: Final = 10
_NOTE_CHARS_MAX: Final = 400
# Where a note begins that does not fit beside its node.
_BELOW: Final = " " * 6
# What a row has beside the name: symbol, type, state, time, and how often and where to.
_ROW_CHARS: Final = 54
# A narrower window has no room for the types of nodes.
_TYPES_COLUMNS_MIN: Final = 96
# The same of the heading: status and time.
_HEADING_CHARS: Final = 32


@dataclass(frozen=True, slots=True)
class _Look:
    """How a state looks: a symbol, its form without Unicode, a word, a style."""

    symbol: str
    ascii: str
    word: str
    style: str


_RUNNING: Final = _Look("▶", ">", "running", "bold cyan")
_PENDING: Final = _Look("·", ".", "", "dim")
_LOOKS: Final[Mapping[str, _Look]] = {
    "ok": _Look("✔", "+", "ok", "green"),
    "completed": _Look("✔", "+", "completed", "bold green"),
    "failed": _Look("✘", "x", "failed", "bold red"),
    "timed_out": _Look("✘", "x", "timed out", "bold red"),
    "cancelled": _Look("-", "-", "cancelled", "yellow"),
    "running": _RUNNING,
    "waiting": _Look("?", "?", "waiting", "bold yellow"),
    "paused": _Look("=", "=", "paused", "bold yellow"),
    "queued": _Look("○", "o", "queued", "cyan"),
    "ambiguous": _Look("!", "!", "ambiguous", "bold magenta"),
}


class _Advice(NamedTuple):
    """What a person may do about a run that stands still."""

    controls: frozenset[str]
    words: str
    command: str


_ADVICE: Final[Mapping[str, _Advice]] = {
    "waiting": _Advice(frozenset({"answer", "human-answer"}), "Answer it", "answer"),
    "paused": _Advice(frozenset({"resume"}), "Let it go on", "resume"),
    "ambiguous": _Advice(frozenset({"review"}), "Look at it", "effects --run"),
    "queued": _Advice(frozenset({"resume"}), "When it is put right", "resume"),
}


@dataclass(frozen=True, slots=True)
class Scene:
    """When and where a picture is shown.

    Attributes:
        now_ms: Wall time.
        is_stale: Whether the server is gone and the picture may be old.
        rows_max: How many lines of the graph fit; None shows all.
        columns: How wide the window is; None shortens no name.
        has_unicode: Whether symbols can be shown.
        is_moving: Whether it is drawn again soon, so that a spinner turns.
        has_advice: Whether it says which command helps a run on that stands still.
    """

    now_ms: int
    is_stale: bool = False
    rows_max: int | None = None
    columns: int | None = None
    has_unicode: bool = True
    is_moving: bool = False
    has_advice: bool = False


def status_span(status: str, scene: Scene) -> Span:
    """Return a status as a symbol and a word."""
    look = _LOOKS.get(status, _PENDING)
    return f"{_symbol(look, scene)} {look.word or escaped(status)}", look.style


def picture(view: RunView, scene: Scene) -> list[Line]:
    """Draw a run.

    Args:
        view: The run as it stands.
        scene: When and where.

    Returns:
        The lines: a heading, why it stands so, an empty line, the graph.
    """
    return [*heading(view, scene), (), *graph(view, scene)]


def heading(view: RunView, scene: Scene) -> list[Line]:
    """Return what a run is called and where it stands, in two to four lines."""
    ended = view.state.finished_at
    elapsed = duration((ended or scene.now_ms) - view.state.created_at)
    title = _shortened(escaped(view.title), scene, _HEADING_CHARS)
    lines: list[Line] = [
        (
            status_span(view.display.status, scene),
            ("  ", ""),
            (title, "bold"),
            ("  ", ""),
            (elapsed, "dim"),
        ),
        (("  ", ""), (view.run_id, "dim")),
    ]
    reason = _reason(view, scene)
    if scene.is_stale:
        lines.append((("  The server is gone; reconnecting.", "bold yellow"),))
    elif reason is not None and not _says_nothing(view):
        lines.append((("  ", ""), (escaped(reason)[:_NOTE_CHARS_MAX], "yellow")))
    advice = _ADVICE.get(view.display.status)
    if scene.has_advice and advice is not None and advice.controls & {*view.display.controls}:
        command = f"pi-workflows {advice.command} {view.run_id}"
        lines.append(((f"  {advice.words}: ", "dim"), (command, "")))
    return lines


def _reason(view: RunView, scene: Scene) -> str | None:
    """Return why a run stands as it does, with what is known of when it goes on."""
    status, again_at = view.display.status, view.again_at
    if status == "queued" and again_at is not None and again_at > scene.now_ms:
        return f"Tries again in {duration(again_at - scene.now_ms)}."
    if status == "paused" and view.display.activity is not None and view.state.current_node:
        return f"Paused; {view.state.current_node} is finishing."
    return view.display.reason


def _shortened(text: str, scene: Scene, chars_around: int) -> str:
    """Return a name that leaves room in the window for what stands beside it."""
    if scene.columns is None:
        return text
    chars_max = max(_NAME_CHARS_MIN, scene.columns - chars_around)
    mark = "…" if scene.has_unicode else "~"
    return text if len(text) <= chars_max else f"{text[: chars_max - 1]}{mark}"


def _says_nothing(view: RunView) -> bool:
    """Whether the reason only repeats what the graph shows."""
    return view.display.status in ("running", "waiting") and not view.possibly_interrupted


def graph(view: RunView, scene: Scene) -> list[Line]:
    """Return the nodes of a run, one a line, in the order in which a run reaches them."""
    order = view.workflow.order
    shown = _window(order, view, scene.rows_max)
    steps = {step.node_id: step for step in view.graph_steps}
    names = [_shortened(escaped(name), scene, _ROW_CHARS) for name in shown]
    name_width = min(_NAME_CHARS_MAX, max(map(len, names), default=0))
    kind_width = max((len(view.workflow.nodes[name].kind) for name in shown), default=0)
    if scene.columns is not None and scene.columns < _TYPES_COLUMNS_MIN:
        kind_width = 0
    rows = [_Row(view, scene, name, steps.get(name)) for name in shown]
    blocks = [[*row.lines(name_width, kind_width), *row.progress()] for row in rows]
    places = _fitting(blocks, shown.index(_centre(shown, view)) if shown else 0, scene.rows_max)
    lines = [line for block in blocks[places.start : places.stop] for line in block]
    above = places.start + (order.index(shown[0]) if shown else 0)
    below = len(order) - above - len(places)
    elsewhere = (view.workflow.node_total or len(order)) - len(order)
    if above:
        lines.insert(0, ((f"  … {plural(above, 'node')} above", "dim"),))
    others = ((below, "below"), (elsewhere, "elsewhere"))
    rest = ", ".join(f"{plural(count, 'node')} {where}" for count, where in others if count)
    if rest:
        lines.append(((f"  … {rest}", "dim"),))
    return lines


def _fitting(blocks: Sequence[Sequence[Line]], centre: int, lines_max: int | None) -> range:
    """Return which nodes fit with all of their lines; the one at the centre always does."""
    first, last = 0, len(blocks)
    left = None if lines_max is None else lines_max - sum(map(len, blocks))
    while left is not None and left < 0 and last - first > 1:
        # The end that is further from the centre goes first.
        if centre - first >= last - 1 - centre:
            left += len(blocks[first])
            first += 1
        else:
            last -= 1
            left += len(blocks[last])
    return range(first, last)


def _window(order: tuple[str, ...], view: RunView, rows_max: int | None) -> tuple[str, ...]:
    """Return the nodes that fit, around the one that the run is at."""
    if rows_max is None or len(order) <= rows_max:
        return order
    centre = order.index(_centre(order, view))
    start = max(0, min(centre - rows_max // 2, len(order) - rows_max))
    return order[start : start + rows_max]


def _centre(order: tuple[str, ...], view: RunView) -> str:
    """Return the node that the run is at, else the one where it was last, else the first."""
    here = view.here
    if here is None and view.graph_steps:
        here = max(view.graph_steps, key=lambda step: step.finished_at or 0).node_id
    return here if here in order else order[0]


@dataclass(frozen=True, slots=True)
class _Row:
    """One node of the graph."""

    view: RunView
    scene: Scene
    name: str
    step: GraphStep | None

    @property
    def is_here(self) -> bool:
        """Whether the run is at this node."""
        return self.name == self.view.here

    def lines(self, name_width: int, kind_width: int) -> list[Line]:
        """Return the row; what does not fit beside it stands below."""
        row = [*self._cells(name_width, kind_width), *self._marks()]
        below: list[Line] = []
        for text, style in self._notes():
            width = sum(len(each) for each, _ in row) + len(text) + 2
            if self.scene.columns is None or width <= self.scene.columns:
                row.append((f"  {text}", style))
            else:
                below.append(((_BELOW, ""), (text, style)))
        return [tuple(row), *below]

    def _cells(self, name_width: int, kind_width: int) -> Line:
        """Return the columns."""
        look = self._look()
        name = _shortened(escaped(self.name), self.scene, _ROW_CHARS)
        kind = self.view.workflow.nodes[self.name].kind if kind_width else ""
        word = look.word
        if not word and self.view.state.finished_at is not None:
            # Of a long run only the newest steps are known: the node may have been reached before.
            word = "not reached" if self.view.graph_step_start == 0 else "unknown"
        name_style = "" if look is not _PENDING else "dim"
        return (
            ("  ", ""),
            (_symbol(look, self.scene), look.style),
            (
                f" {name:<{name_width}}",
                f"bold {name_style}" if self.is_here else name_style,
            ),
            (f"  {kind:<{kind_width}}" if kind_width else "", "dim"),
            (f"  {word:<11}", look.style),
            (f"{self._time():>9}", "dim"),
        )

    def progress(self) -> Iterator[Line]:
        """Yield what the node tells about its work while the run is at it."""
        if not self.is_here:
            return
        for update in self.view.updates:
            if update.node_id == self.name:
                text = progress_line(
                    update.type, update.key, update.data, has_unicode=self.scene.has_unicode
                )
                yield (("    ", ""), (text, "cyan"))

    def _look(self) -> _Look:
        """Return how the node stands."""
        if self.is_here:
            return _LOOKS.get(self.view.display.status, _RUNNING)
        return _PENDING if self.step is None else _LOOKS[self.step.outcome]

    def _time(self) -> str:
        """Return how long its newest attempt took, or takes."""
        started = _start(self.view) if self.is_here else None
        if started is not None:
            return duration(self.scene.now_ms - started.at)
        if self.is_here or self.step is None or self.step.started_at is None:
            return ""
        return duration((self.step.finished_at or self.step.started_at) - self.step.started_at)

    def _marks(self) -> Iterator[Span]:
        """Yield how often the node was visited and tried, and where the run went from it."""
        visit, attempt = self._counts()
        if visit > 1:
            yield f"  {plural(visit, 'visit')}", "dim"
        if attempt > visit:
            yield f"  {plural(attempt, 'attempt')}", "dim"
        taken = None if self.is_here or self.step is None else self._taken()
        if taken:
            yield f"  → {taken}" if self.scene.has_unicode else f"  -> {taken}", "dim"

    def _counts(self) -> tuple[int, int]:
        """Return the number of the newest visit and attempt, the open one's as far as known."""
        started = _start(self.view) if self.is_here else None
        if started is not None:
            visit, attempt = started.payload.get("visit"), started.payload.get("attemptNumber")
            if isinstance(visit, int) and isinstance(attempt, int):
                return visit, attempt
        return (0, 0) if self.step is None else (self.step.visit, self.step.attempt_number)

    def _notes(self) -> Iterator[Span]:
        """Yield what the node does or waits for, and why it failed."""
        if self.is_here and self.view.detail:
            yield escaped(self.view.detail), "italic"
        if self.step is None or self.step.outcome == "ok":
            return
        result = self.view.state.results.get(self.name)
        if result is None or result.error is None:
            return
        if not self.is_here:
            yield failure_line(result.error), "red"
        elif self._counts()[0] == self.step.visit:
            yield f"before: {failure_line(result.error)}", "dim"

    def _taken(self) -> str | None:
        """Return which of several ways the run took from here."""
        edge = next((e for e in self.view.workflow.edges if e.source == self.name), None)
        if edge is None or edge.to is not None:
            return None
        prefix = f"{self.name}->"
        ways = [way for way in self.view.taken_transitions if way.startswith(prefix)]
        targets = [way.removeprefix(prefix) for way in ways]
        return escaped(max(targets, key=self._follows)) if targets else None

    def _follows(self, target: str) -> int:
        """Order the ways out of a loop by how late their targets began: the last one taken."""
        if target in (self.view.state.current_node, self.view.state.waiting_on):
            return self.scene.now_ms
        started = [step.started_at or 0 for step in self.view.graph_steps if step.node_id == target]
        return max(started, default=0)


def _start(view: RunView) -> TraceItem | None:
    """Return how the open attempt started, if its event is still on the view's page."""
    for item in reversed(view.trace_page.items):
        if item.type == "attempt.started" and item.attempt_id == view.state.current_attempt_id:
            return item
    return None


def failure_line(error: Json) -> str:
    """Return a stored error in one line."""
    if isinstance(error, dict) and isinstance(message := error.get("message"), str):
        first = message.strip().split("\n", 1)[0]
        return escaped(first)[:_NOTE_CHARS_MAX]
    return value_line(error, chars_max=_NOTE_CHARS_MAX)


def _symbol(look: _Look, scene: Scene) -> str:
    """Return a symbol that the terminal can show; the one of work turns."""
    if not scene.has_unicode:
        return look.ascii
    if look is _RUNNING and scene.is_moving:
        return _SPINNER[scene.now_ms // 100 % len(_SPINNER)]
    return look.symbol
