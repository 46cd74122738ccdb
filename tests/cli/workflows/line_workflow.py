"""Two steps in a line."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from pi_workflows import Context, compute, define_workflow, edge


class Settings(BaseModel):
    """The input."""

    model_config = ConfigDict(extra="forbid")

    word: str = Field(default="hello", min_length=1)
    times: int = Field(default=2, ge=1, le=1_000)


class Words(BaseModel):
    """The output."""

    words: list[str]
    markdown: str


@compute
def gather(ctx: Context[Settings]) -> list[str]:
    """Repeat the word."""
    return [ctx.input.word] * ctx.input.times


@compute
def report(ctx: Context[Settings]) -> Words:
    """Write it down."""
    words = ctx.output_of(gather)
    return Words(words=words, markdown=f"# Words\n\n- {ctx.input.word}\n")


workflow = define_workflow(
    name="line",
    title=lambda settings: f"Say {settings.word}",
    input=Settings,
    start="gather",
    nodes={"gather": gather, "report": report},
    edges=[edge("gather", "report")],
)
