"""Every bound of the product, with its unit and its reason.

A name ends in its unit; `_MAX` is the greatest value still accepted. Wall and monotonic durations
are integer milliseconds. Nothing here is configuration: what may be set says so.
"""

from __future__ import annotations

from typing import Final

_KIB: Final = 1_024
_MIB: Final = 1_024 * _KIB

# --- JSON ----------------------------------------------------------------------------------------

# Deeper than any honest value, shallow enough for every parser's own recursion limit.
VALUE_DEPTH_MAX: Final = 100
# A stored value stands inside an envelope, a view and a page: 28 levels are left for those.
FRAME_DEPTH_MAX: Final = 128
# The path of a field stands in a one-line error; longer ones lose their middle.
FIELD_CHARS_MAX: Final = 256
# One line that a person reads, without payloads (the client protocol, section 2).
ERROR_CHARS_MAX: Final = 1_000

# --- Frames and connections ----------------------------------------------------------------------

# One canonical object with its newline, in both directions; bounds what a peer can make us buffer.
FRAME_BYTES_MAX: Final = 1 * _MIB
# Identities in an envelope, in UTF-8.
ENVELOPE_ID_BYTES_MAX: Final = 256
# The greatest integer that every reader of JSON has exactly: 2^53-1.
REVISION_MAX: Final = 2**53 - 1
# sockaddr_un holds 108 bytes with the closing NUL.
SOCKET_PATH_BYTES_MAX: Final = 107
# Beyond this many unanswered requests the server stops reading from that connection.
INFLIGHT_REQUESTS_MAX: Final = 64
# Connections at once: many viewers and scripts of one user, far from the process's descriptors.
CONNECTIONS_MAX: Final = 256
# Subscriptions of one connection: `watch` takes several runs, a viewer a few panes.
SUBSCRIPTIONS_MAX: Final = 256
# What one read of a socket takes.
SOCKET_READ_BYTES: Final = 64 * _KIB
# A receipt must fit a frame with room for its envelope; checked before the command commits.
RECEIPT_BYTES_MAX: Final = 512 * _KIB
# A subscriber that takes nothing for this long is closed; it never delays the others.
SLOW_CLIENT_MS: Final = 60_000
# Connections that are told of news before anything else goes on: half a millisecond of frames.
TOLD_AT_ONCE_MAX: Final = 16
# Above this part of its time at work the server rests from telling news: a hundred changes a second
# that a hundred connections watch stay below it.
PUSH_LOADED_SHARE: Final = 0.9
# What the part is measured over: long enough for many commands, short enough for a burst to count.
LOAD_WINDOW_MS: Final = 100
# After a round of news it then rests so many times as long as the round took, so that commands have
# three quarters of the time; at least so long that what a person sees as motion becomes one event,
# and at most so long that nobody takes the view for one that stands still.
PUSH_REST_FACTOR: Final = 3
PUSH_REST_MS_MIN: Final = 30
PUSH_REST_MS_MAX: Final = 250
# Runs of which it is remembered whose session they reserve; beyond them it is looked up again.
SESSIONS_REMEMBERED_MAX: Final = 4_096
# Connecting and the hello that follows, each, on a local socket.
CLIENT_CONNECT_MS: Final = 2_000
# A client that starts a server looks for it this often, this long.
CLIENT_START_POLL_MS: Final = 50
CLIENT_START_MS: Final = 10_000
# Reconnecting doubles the delay from the first to the second bound, at random in its upper half.
CLIENT_RECONNECT_MIN_MS: Final = 250
CLIENT_RECONNECT_MAX_MS: Final = 10_000
CLIENT_RECONNECTS_MAX: Final = 12
# Resends of a command whose reply was lost; then its outcome is unknown.
CLIENT_RESEND_MS: Final = 30_000
# What a person may let a command wait: a year, which no wait is and every clock can count.
PATIENCE_SECONDS_MAX: Final = 31_536_000
# Patches of one subscription that nobody took: above this a snapshot is the shorter way.
CLIENT_BACKLOG_BYTES_MAX: Final = 1 * _MIB

# --- Values --------------------------------------------------------------------------------------

# One node output or effect result; larger results belong in a file whose digest the output names.
VALUE_BYTES_MAX: Final = 8 * _MIB
# Up to here a value travels inside the frame that names it, beyond it as a content reference.
INLINE_BYTES_MAX: Final = 16 * _KIB
# The input travels in `run.start` beside the snapshot: both and the envelope fit one frame.
INPUT_BYTES_MAX: Final = 512 * _KIB
# An answer travels in one frame.
ANSWER_BYTES_MAX: Final = 512 * _KIB
# Events hold facts and the names of blobs, never bodies.
EVENT_PAYLOAD_BYTES_MAX: Final = 64 * _KIB
# Why a run was parked, in the event itself: a line for the trace; the whole error is a value.
DETAIL_CHARS_MAX: Final = 200
# Values go between runner and server in verified parts; base64 makes 4/3 of it, which fits a frame.
CONTENT_PART_BYTES_MAX: Final = 512 * _KIB
# A content chunk to a viewer, before base64: small enough to leave a connection responsive.
CONTENT_CHUNK_BYTES_MAX: Final = 192 * _KIB
# Data of one progress update, and how many (type, key) pairs an attempt keeps.
UPDATE_DATA_BYTES_MAX: Final = 64 * _KIB
UPDATE_KEYS_MAX: Final = 1_024
# Updates of one run: a steady rate and the burst above it; refused, not queued.
UPDATES_PER_SECOND_MAX: Final = 20
UPDATES_BURST_MAX: Final = 100
# A run's settings, one change of them, and a pointer into them: what a person still oversees.
SETTINGS_BYTES_MAX: Final = 256 * _KIB
SETTINGS_PATCH_BYTES_MAX: Final = 64 * _KIB
SETTINGS_OPERATIONS_MAX: Final = 256
SETTINGS_POINTER_BYTES_MAX: Final = _KIB
# Changes that an item of a run's settings shows; the others stand in the log.
SETTINGS_CHANGES_SHOWN_MAX: Final = 8
# Bytes of one of them, or of the first value, beside the value itself.
SETTINGS_PATCH_SHOWN_BYTES_MAX: Final = _KIB
# A prompt for after a run: as long as a node's own.
FOLLOW_UP_CHARS_MAX: Final = 96_000
# Prompts that wait for one run's end: each is a turn of the session's model.
FOLLOW_UPS_QUEUED_MAX: Final = 64
# What a message says beside its prompt: where the step belongs and how it is answered.
LIVE_CONTROL_CHARS_MAX: Final = 8_192
# What a message about a run's end quotes of it: input, results, errors, each and in all.
TERMINAL_VALUE_CHARS_MAX: Final = 4_000
TERMINAL_VALUES_MAX: Final = 12
# A value that is read for that at all: the writer waits while it is.
TERMINAL_READ_BYTES_MAX: Final = 64 * _KIB
# Turns of a session that may end without an answer before a step fails; each but the last is
# answered by a reminder.
REMINDERS_MAX: Final = 2
# Runs that may be launched by themselves from the end of one run, whatever they are called.
RECOVERY_LAUNCHES_MAX: Final = 2
# Active time of a turn that looks at a run's end.
TERMINAL_TURN_MS: Final = 900_000
# How long an ended run stays the session's work after its last turn.
TERMINAL_RETAINED_MS: Final = 60_000
# Accounts of one track of progress that an estimate looks at: more than its intervals.
TRACK_ACCOUNTS_MAX: Final = 64
# The evidence that a person gives for an effect's outcome: a few pages of text.
EVIDENCE_CHARS_MAX: Final = 4_000
# What a list shows with each effect: enough to decide by, while a page stays bounded.
EFFECTS_LISTED_MAX: Final = 64
EFFECT_TRIES_LISTED_MAX: Final = 8
EFFECT_DECISIONS_LISTED_MAX: Final = 4
EFFECT_EVENTS_READ_MAX: Final = 64

# --- Definition ----------------------------------------------------------------------------------

# The snapshot travels in `run.start` beside the input.
DEFINITION_BYTES_MAX: Final = 384 * _KIB
# Node attempts of a run when the author names no bound: an accidental loop ends.
STEPS_DEFAULT: Final = 100
# Active time of a node when the author names none.
NODE_TIMEOUT_DEFAULT_MS: Final = 900_000
# Callables that compute a title or a timeout.
DEFINITION_CALLBACK_MS: Final = 30_000
# Text of an effect type.
EFFECT_TYPE_CHARS_MAX: Final = 256
# What an author may set `max_steps` to: a run that long is still listed, paged and rebuilt.
STEPS_MAX: Final = 1_000_000
# Nodes of one definition: far beyond what a person reads, well inside the snapshot's bytes.
NODES_MAX: Final = 4_096
# A budget or a retry delay; longer waits belong to a checkpoint or to another run.
NODE_TIMEOUT_MS_MAX: Final = 30 * 86_400_000
RETRY_DELAY_MS_MAX: Final = 7 * 86_400_000
RETRY_ATTEMPTS_MAX: Final = 1_000
# How long an edge may wait, as a retry may.
EDGE_DELAY_MS_MAX: Final = RETRY_DELAY_MS_MAX
RETRY_BACKOFF_MAX: Final = 100.0
# One line that a person reads in a list: a checkpoint's summary, a status detail, a run's title.
SUMMARY_CHARS_MAX: Final = 1_000
STATUS_DETAIL_CHARS_MAX: Final = 200
TITLE_CHARS_MAX: Final = 200
# Rules about the parts of a workflow's settings: far beyond what a person writes.
SETTINGS_RULES_MAX: Final = 256
# A prompt of an agent node, and what its author may raise that to.
PROMPT_CHARS_DEFAULT: Final = 96_000
PROMPT_CHARS_MAX: Final = 1_000_000
# What a description of an expected output takes.
EXPECTED_OUTPUT_CHARS_MAX: Final = 16_000
# Tools that a step may be limited to: more than any session has.
ALLOWED_TOOLS_MAX: Final = 256
# Text of a notification: what a person still reads; longer ones belong in a file.
NOTIFICATION_CHARS_MAX: Final = 64_000
# Choices of a model's decision, and the text that stands for one.
CHOICES_MAX: Final = 64
CHOICE_CHARS_MAX: Final = 200
# Opening brackets of a model's text at which a JSON value is looked for.
JSON_SCANS_MAX: Final = 64
# One source file of a workflow, and how many helper modules it may import from its directory.
SOURCE_BYTES_MAX: Final = 4 * _MIB
SOURCE_FILES_MAX: Final = 256
# Workflow files of one directory, so that a listing stays one answer.
LISTED_FILES_MAX: Final = 1_000
# Mistakes that one answer reports; the rest is counted in a last line.
PROBLEMS_MAX: Final = 200

# --- Names ---------------------------------------------------------------------------------------

# `[A-Za-z0-9][A-Za-z0-9._-]{0,199}`: a run ID is also a file name and an argument.
RUN_ID_CHARS_MAX: Final = 200
# `[a-z0-9][a-z0-9-]{0,63}`: a workflow's name is a command.
WORKFLOW_NAME_CHARS_MAX: Final = 64
# `[A-Za-z_][A-Za-z0-9_-]*`: a node's name stands in paths, trace lines and update keys.
NODE_NAME_CHARS_MAX: Final = 100
# A project path; Linux takes no longer one.
PATH_BYTES_MAX: Final = 4_096

# --- Leases and timers ---------------------------------------------------------------------------

# The server's claim outlives two lost heartbeats.
SERVER_CLAIM_MS: Final = 30_000
HEARTBEAT_MS: Final = 10_000
# Run and effect claims; renewed by every boundary, and by a timer that leaves half their life.
RUN_CLAIM_MS: Final = 60_000
RUN_CLAIM_RENEW_MS: Final = 25_000
# How much active time a crash can lose.
ACTIVE_SAMPLE_MS: Final = 5_000
# A server that was started in the background says by then that it is ready; before that it may have
# to end what its predecessor left behind.
SERVER_READY_MS: Final = 30_000
# Between two looks of a starting server for the one that came first.
SERVER_LOOK_MS: Final = 50
# Without connection, child or scheduled work the server leaves.
IDLE_EXIT_MS: Final = 600_000
# `server stop` waits this long for effects that are applying.
STOP_GRACE_MS: Final = 30_000

# --- Group commit --------------------------------------------------------------------------------

# One transaction takes what waits up to these: beyond them its own size would cost the latency that
# it saves.
GROUP_COMMANDS_MAX: Final = 64
GROUP_BYTES_MAX: Final = 8 * _MIB
GROUP_WORK_MS: Final = 5
# Commands that wait for the writer; one more is answered `unavailable`.
WRITER_QUEUE_MAX: Final = 1_024

# --- Runner --------------------------------------------------------------------------------------

# Runs that execute at once unless PI_WORKFLOWS_MAX_RUNNERS says otherwise.
RUNNERS_DEFAULT: Final = 4
# From launch until the runner has verified every source.
RUNNER_READY_MS: Final = 10_000
# From SIGTERM to SIGKILL, for runners and for shells.
TERMINATE_GRACE_MS: Final = 2_000
# How long leftovers of a process tree are looked for after SIGKILL.
TERMINATE_SCAN_MS: Final = 5_000
# A runner told to shut down finishes its proposal and leaves.
RUNNER_SHUTDOWN_MS: Final = 5_000
# What a node's budget leaves, and this, until a runner that hangs is ended.
RUNNER_STUCK_MS: Final = 5_000
# Message of a failed node, effect or run: enough for the end of a program's complaint; the middle
# goes first.
FAILURE_CHARS_MAX: Final = 4_000
# Commands in one proposal: one savepoint, one reply.
PROPOSAL_COMMANDS_MAX: Final = 32
# Proposals that a runner may have unanswered, across compute nodes only.
PROPOSALS_AHEAD_MAX: Final = 16
# Bytes put by a runner that no proposal names yet.
CONTENT_UNNAMED_BYTES_MAX: Final = 16 * _MIB
# Values inside a launch envelope, in all; the others are named by digest.
LAUNCH_INLINE_BYTES_MAX: Final = 256 * _KIB
# A runner's own log lines: their length and their rate.
RUNNER_LOG_BYTES_MAX: Final = 1 * _KIB
RUNNER_LOGS_PER_SECOND_MAX: Final = 20
# What a child wrote last, kept for a diagnosis.
RUNNER_OUTPUT_BYTES_MAX: Final = 64 * _KIB
# Each of a shell step's two outputs; the rest is dropped and the result says so.
SHELL_OUTPUT_CHARS_MAX: Final = 1_000_000
# A line that a step's reader of lines gets; the rest of a longer one is dropped.
SHELL_LINE_CHARS_MAX: Final = 16_384
# Processes of shell steps that one runner may have registered at once; a run works on one node at a
# time.
SHELLS_MAX: Final = 64
# Launches in a row without a new step, and the delays before them, until a run is parked.
NO_PROGRESS_LAUNCHES_MAX: Final = 3
NO_PROGRESS_DELAYS_MS: Final = (0, 1_000, 5_000)

# --- Child answers -------------------------------------------------------------------------------

# One line in, one line out of a resolver or validator.
CHILD_ANSWER_MS: Final = 30_000
CHILD_ANSWER_BYTES_MAX: Final = 8 * _MIB
# Children that load workflows at once, and as many again that wait warm for their next request.
RESOLVERS_MAX: Final = 4
# A warm child that nobody asks for this long ends, so that an idle server can leave.
RESOLVER_WARM_MS: Final = 60_000

# --- Views ---------------------------------------------------------------------------------------

# A page: whichever comes first, but at least one item.
PAGE_ITEMS_MAX: Final = 256
PAGE_BYTES_MAX: Final = 64 * _KIB
# A snapshot over this is rebuilt with half the page budgets; the rest of a frame is its envelope.
SNAPSHOT_BYTES_MAX: Final = 768 * _KIB
# Patches over this are not sent: a snapshot costs no more.
PATCH_BYTES_MAX: Final = 256 * _KIB
# Stored patches that are kept as they were read: they name values, so that all steps have the same
# few. Longer ones than this are read each time.
STORED_PATCHES_KEPT_MAX: Final = 256
STORED_PATCH_KEPT_BYTES_MAX: Final = 4 * _KIB
# Presentation revisions of a run that a reader may continue from.
VIEW_REVISIONS_KEPT: Final = 256
# A definition over this is shown by windows of nodes and edges.
VIEW_DEFINITION_BYTES_MAX: Final = 128 * _KIB
# Values up to this come along with the rows of a page; one that is larger is read when it is shown.
CARRIED_BYTES_MAX: Final = 1 * _KIB
# Everything that a run gave so far in one document: as much as one value may have. Over it, each
# value is fetched by its own reference.
AGGREGATE_BYTES_MAX: Final = 8 * _MIB
# Generated documents that are kept of a run: the newest, and the one that somebody may still fetch.
VIEW_DOCUMENTS_KEPT: Final = 2
# Runs in a list when the caller names no number.
RUN_LIST_DEFAULT: Final = 100
# `display.reason` in a list item: a fixed phrase.
LIST_REASON_CHARS_MAX: Final = 160

# What a session's widget shows of its run: rows of nodes, those of them before the working one, and
# lines of progress.
SESSION_NODES_MAX: Final = 16
SESSION_NODES_BEFORE: Final = 4
SESSION_UPDATES_MAX: Final = 16
# A text in it, and a value; the whole view then fits a frame several times.
SESSION_TEXT_BYTES_MAX: Final = 4 * _KIB
SESSION_DETAIL_BYTES_MAX: Final = 8 * _KIB

# What one search asks for, and what it shows around each match: a line that a person reads.
SEARCH_QUERY_CHARS_MAX: Final = 160
EXCERPT_CHARS_MAX: Final = 160
# One page of a search looks at so many steps or entries and reads so many bytes of values, some
# milliseconds of work between which others are served; a single larger value still is one page.
SEARCH_ROWS_MAX: Final = 512
SEARCH_PAGE_BYTES_MAX: Final = 512 * _KIB
# A value is searched this far: folding the case of more of it would hold up everybody else.
SEARCH_VALUE_BYTES_MAX: Final = 256 * _KIB

# --- Session capture -----------------------------------------------------------------------------

# One batch of a recorder: what comes together within 25 ms, far below a group's bytes. A single
# record may be larger, as far as its frame goes.
SESSION_BATCH_RECORDS_MAX: Final = 256
SESSION_BATCH_BYTES_MAX: Final = 256 * _KIB
SESSION_RECORD_BYTES_MAX: Final = 1 * _MIB
# Session events between two stored replay states: what a page folds at most, less one.
SESSION_CHECKPOINT_EVENTS: Final = 256
# What a replay state keeps open at once: a session streams one message at a time and runs a few
# tools; beyond that the oldest are left out, so that no recorder can make the state grow.
SESSION_MESSAGES_MAX: Final = 16
SESSION_TOOLS_MAX: Final = 64
SESSION_BLOCKS_MAX: Final = 128
# The name of a role, a tool or a failure: a word, not a text.
SESSION_WORD_CHARS_MAX: Final = 128
# Tool calls that one turn may name.
SESSION_TURN_TOOLS_MAX: Final = 1_024

# --- Command line --------------------------------------------------------------------------------

# Rows that `runs` shows.
RUNS_SHOWN_DEFAULT: Final = 50
# Runs that `search` looks through when none is named, the newest first.
RUNS_SEARCHED_DEFAULT: Final = 50
# Matches that one search shows, and one document holds: more than anybody reads through.
MATCHES_SHOWN_MAX: Final = 1_000

# --- Journals and files --------------------------------------------------------------------------

# The writer checkpoints when the write-ahead log passes this, or after the idle time.
WAL_CHECKPOINT_BYTES: Final = 4 * _MIB
WAL_IDLE_MS: Final = 2_000
# A log of this size means that a reader holds it; reported.
WAL_REPORT_BYTES: Final = 64 * _MIB
# What SQLite leaves of the log file after a checkpoint.
JOURNAL_SIZE_BYTES: Final = 64 * _MIB
# Another process of the same user may hold a scratch file; the live file has no other.
BUSY_MS: Final = 5_000
# Statements kept prepared: more than the product has, as preparing one costs more than running it.
STATEMENTS_PREPARED_MAX: Final = 512
# Pages that each connection to the live file keeps in memory.
PAGE_CACHE_BYTES: Final = 8 * _MIB
# Smaller content is hashed once more as it is stored: microseconds, against a wrong name for good.
BLOB_REHASH_BYTES_MAX: Final = 64 * _KIB
# Parsed definitions and other documents that are kept, and the bytes that they were parsed from.
DOCUMENTS_KEPT_MAX: Final = 64
DOCUMENTS_KEPT_BYTES_MAX: Final = 8 * _MIB
# Events read in one slice of the log; their payloads are at most 64 KiB each.
EVENTS_SLICE_MAX: Final = 256
# Pages that one step of a backup copies: 4 MiB, a few milliseconds.
BACKUP_STEP_PAGES: Final = 1_024
# The server's log: its files and the size of each.
LOG_FILES_MAX: Final = 3
LOG_FILE_BYTES_MAX: Final = 4 * _MIB
# One line of the log.
LOG_LINE_CHARS_MAX: Final = 1_024
# Runs that one violation names; how many rows violate it is always told.
VIOLATION_RUNS_MAX: Final = 100
# Changed rows of one table that an audit names: more than anybody reads, few enough to hold.
CHANGED_ROWS_MAX: Final = 1_000
# Events of a log that one document holds when nothing else is asked: under a MiB, read in a moment.
LOG_EVENTS_DEFAULT: Final = 1_000
# Events of a log that one document can hold: as much as a program reads at once.
LOG_EVENTS_MAX: Final = 10_000
# `state.status` looks for violations this long.
STATE_STATUS_MS: Final = 2_000

# --- Decisions -----------------------------------------------------------------------------------

# What a person is shown (the engine contract, section 5): read in one go, sent in twenty messages.
PRESENTATION_UNITS_MAX: Final = 64_000
PRESENTATION_BLOCKS_MAX: Final = 256
PRESENTATION_ITEMS_MAX: Final = 256
PRESENTATION_TEXT_UNITS_MAX: Final = 16_000
# Choices of one decision: more are no choice for a person.
DECISION_CHOICES_MAX: Final = 32
# The name of who is asked, such as `operator`.
DECISION_AUDIENCE_CHARS_MAX: Final = 128
# What a person types to a choice: the bounds when the author names none, and the greatest.
DECISION_INPUT_CHARS_MIN: Final = 1
DECISION_INPUT_CHARS_DEFAULT: Final = 4_000
DECISION_INPUT_CHARS_MAX: Final = 16_000
# A deadline: 365 days. A longer one belongs to a workflow that asks again.
DECISION_DEADLINE_MS_MAX: Final = 365 * 86_400_000
# Candidates of one decision that are kept; one who is refused so often learns nothing new.
DECISION_CANDIDATES_MAX: Final = 1_000

# --- The operator --------------------------------------------------------------------------------

# A passphrase: long enough that guessing at one a second is hopeless, short enough to be typed.
PASSPHRASE_CHARS_MIN: Final = 8
PASSPHRASE_CHARS_MAX: Final = 1_024
# scrypt takes 32 MiB and about a tenth of a second: whoever stole the file has to pay that too.
SCRYPT_COST: Final = 1 << 15
SCRYPT_BLOCK: Final = 8
SCRYPT_BYTES_MAX: Final = 64 * _MIB
# The file is a few hundred bytes; a larger one is none of ours.
OPERATOR_FILE_BYTES_MAX: Final = 4 * _KIB
# How long a connection counts as the operator's after a proof.
OPERATOR_PROOF_MS: Final = 600_000
# Attempts of the whole server: one a second; after five failures in a row each waits twice as long.
OPERATOR_ATTEMPT_MS: Final = 1_000
OPERATOR_FAILURES_FREE: Final = 5
OPERATOR_BACKOFF_MAX_MS: Final = 300_000
