"""The program that measures: its lines, its table and its choices. No figure is judged."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import anchor, rebuilding
from benchmarks.catalogue import METRICS
from benchmarks.program import main
from pi_workflows.base import canonical

MEMBERS = {"system", "metric", "value", "unit", "durable", "n"}


def measured(output: str) -> list[dict[str, canonical.Json]]:
    """Read the lines that the program wrote."""
    lines: list[dict[str, canonical.Json]] = []
    for text in output.splitlines():
        line = canonical.decode(text.encode())
        assert isinstance(line, dict), text
        lines.append(line)
    return lines


def test_every_metric(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every metric and the raw library beside it are told twice, and no file stays."""
    assert main(["--dir", str(tmp_path), "--scale", "0.002"]) == 0
    written = capsys.readouterr()
    lines = measured(written.out)
    for line in lines:
        assert set(line) == MEMBERS
        assert isinstance(line["value"], float | int)
        assert line["value"] > 0
        assert isinstance(line["n"], int)
        assert line["n"] > 0
        assert line["durable"] is (
            line["metric"] == anchor.METRIC or "durable" in str(line["metric"])
        )
        assert str(line["metric"]) in written.err
    assert {str(line["metric"]) for line in lines if line["system"] == "pi-workflows"} == set(
        METRICS
    )
    assert {str(line["metric"]) for line in lines if line["system"] == anchor.SYSTEM} == {
        anchor.METRIC
    }
    assert list(tmp_path.iterdir()) == []


def test_only_the_named_metrics_are_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A choice leaves out every other metric; the raw library is always beside it."""
    named = rebuilding.DOMAIN_ONLY
    assert main(["--dir", str(tmp_path), "--scale", "0.002", "--only", named]) == 0
    lines = measured(capsys.readouterr().out)
    assert {str(line["metric"]) for line in lines} == {named, anchor.METRIC}


@pytest.mark.parametrize("scale", ["0", "-1", "1001", "nan"])
def test_a_scale_without_sense_is_refused(scale: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The program ends before it measures, and says why."""
    with pytest.raises(SystemExit) as ended:
        main(["--scale", scale])
    assert ended.value.code == 2
    assert "a scale is above 0" in capsys.readouterr().err


def test_an_unknown_metric_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """The program ends before it measures, and names the metrics that there are."""
    with pytest.raises(SystemExit) as ended:
        main(["--only", "speed"])
    assert ended.value.code == 2
    assert rebuilding.DOMAIN_ONLY in capsys.readouterr().err
