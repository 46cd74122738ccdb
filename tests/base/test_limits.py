"""The limits must agree with one another: what one allows, the next must be able to carry."""

from __future__ import annotations

from pi_workflows.base import limits

# The members of an envelope beside its payload, generously.
_ENVELOPE_BYTES = 16_384


def _base64_bytes(count: int) -> int:
    """Return the length of so many bytes in base64."""
    return -(-count // 3) * 4


def test_a_snapshot_fits_a_frame() -> None:
    """The largest run view that is sent leaves room in a frame for its envelope."""
    assert limits.SNAPSHOT_BYTES_MAX + _ENVELOPE_BYTES <= limits.FRAME_BYTES_MAX


def test_a_start_request_fits_a_frame() -> None:
    """The largest input and the largest definition travel together in one `run.start`."""
    request = limits.INPUT_BYTES_MAX + limits.DEFINITION_BYTES_MAX
    assert request + _ENVELOPE_BYTES <= limits.FRAME_BYTES_MAX


def test_an_answer_fits_a_frame() -> None:
    """The largest answer travels in one request."""
    assert limits.ANSWER_BYTES_MAX + _ENVELOPE_BYTES <= limits.FRAME_BYTES_MAX


def test_a_receipt_fits_a_frame() -> None:
    """The largest receipt that may be stored can be sent."""
    assert limits.RECEIPT_BYTES_MAX + _ENVELOPE_BYTES <= limits.FRAME_BYTES_MAX


def test_a_content_part_fits_a_frame() -> None:
    """The largest part of a value fits a frame once base64 has made it a third longer."""
    for part in (limits.CONTENT_PART_BYTES_MAX, limits.CONTENT_CHUNK_BYTES_MAX):
        assert _base64_bytes(part) + _ENVELOPE_BYTES <= limits.FRAME_BYTES_MAX


def test_a_proposal_with_inline_values_fits_a_frame() -> None:
    """Every command of the longest proposal may carry one inline value."""
    inline = limits.PROPOSAL_COMMANDS_MAX * limits.INLINE_BYTES_MAX
    assert inline + _ENVELOPE_BYTES <= limits.FRAME_BYTES_MAX


def test_a_launch_envelope_fits_a_frame() -> None:
    """The values inside a launch envelope leave most of a frame to its maps of visits."""
    assert limits.LAUNCH_INLINE_BYTES_MAX * 2 <= limits.FRAME_BYTES_MAX


def test_a_page_full_of_the_largest_inline_value_is_still_bounded() -> None:
    """A page always holds one item, and the largest inline value fits into it."""
    assert limits.INLINE_BYTES_MAX < limits.PAGE_BYTES_MAX < limits.SNAPSHOT_BYTES_MAX


def test_a_stored_value_fits_a_frame_in_depth() -> None:
    """A value nested as deep as may be stored can stand inside an envelope, a view and a page."""
    levels_of_an_envelope = 16
    assert limits.VALUE_DEPTH_MAX + levels_of_an_envelope <= limits.FRAME_DEPTH_MAX


def test_a_group_takes_the_largest_value() -> None:
    """A command that carries the largest value can be committed at all."""
    assert limits.VALUE_BYTES_MAX <= limits.GROUP_BYTES_MAX


def test_claims_outlive_their_renewals() -> None:
    """One renewal may be lost before a claim expires."""
    assert 2 * limits.HEARTBEAT_MS < limits.SERVER_CLAIM_MS
    assert 2 * limits.RUN_CLAIM_RENEW_MS < limits.RUN_CLAIM_MS


def test_the_path_of_a_field_fits_an_error() -> None:
    """A path leaves most of an error's one line to what is wrong."""
    assert limits.FIELD_CHARS_MAX * 2 <= limits.ERROR_CHARS_MAX


def test_no_progress_has_a_delay_for_each_launch() -> None:
    """Each of the launches that may be lost in a row has its delay."""
    assert len(limits.NO_PROGRESS_DELAYS_MS) == limits.NO_PROGRESS_LAUNCHES_MAX
