-- The one schema of state.sqlite: pi-workflows-state, version 1.
--
-- It changes in place and is never migrated (README.md beside this file). Its SHA-256 stands in every database and
-- in schema_v1.sha256, so that one changed byte here makes every older database a refused one.
--
-- Rows come from one of four places, and each table says which:
--   events    rebuilt from the log by the projector that wrote them; replay gives the same bytes
--   journal   primary: the log itself, content, receipts, captured sessions; never rebuilt
--   process   facts about live processes and clocks; left out of replay and of comparison
--   viewer    what people look at; rebuilt with the rows that it shows
--
-- Times are integer milliseconds since the epoch (UTC). A digest is 32 bytes. A column that ends in _hash names a
-- blob by foreign key; of the others only the keys blob_hash, content_hash and token_hash are so called. Every
-- foreign key's child column leads an index, or has one of its own over the rows where it is set: deleting a blob
-- or a run would scan those tables otherwise.

PRAGMA application_id = 1346983750;
PRAGMA user_version = 1;

-- Schema, projects, content ------------------------------------------------------------------------------------

-- process: which schema this file has, and which program made it.
CREATE TABLE schema_meta (
    id INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
    schema_name TEXT NOT NULL CHECK (schema_name = 'pi-workflows-state'),
    schema_version INTEGER NOT NULL CHECK (schema_version = 1),
    schema_digest BLOB NOT NULL CHECK (length(schema_digest) = 32),
    app_version TEXT NOT NULL,
    created_at INTEGER NOT NULL CHECK (created_at >= 0),
    updated_at INTEGER NOT NULL CHECK (updated_at >= 0)
) STRICT;

-- events: a project directory by its canonical path.
CREATE TABLE projects (
    project_id TEXT NOT NULL PRIMARY KEY,
    canonical_path TEXT NOT NULL UNIQUE,
    created_at INTEGER NOT NULL CHECK (created_at >= 0)
) STRICT;

-- journal: content by its SHA-256. A rowid table: WITHOUT ROWID halved the rate of group commits and doubled the disk.
CREATE TABLE blobs (
    blob_hash BLOB NOT NULL PRIMARY KEY CHECK (length(blob_hash) = 32),
    media_type TEXT NOT NULL,
    byte_length INTEGER NOT NULL CHECK (byte_length >= 0),
    content BLOB NOT NULL,
    created_at INTEGER NOT NULL CHECK (created_at >= 0),
    CHECK (byte_length = length(content))
) STRICT;

-- viewer: generated documents that a view refers to; read only with run, digest and media type together.
CREATE TABLE run_view_content (
    run_id TEXT NOT NULL REFERENCES runs (run_id) ON DELETE CASCADE,
    content_hash BLOB NOT NULL CHECK (length(content_hash) = 32),
    media_type TEXT NOT NULL CHECK (media_type IN ('application/json', 'text/plain')),
    byte_length INTEGER NOT NULL CHECK (byte_length >= 0),
    content BLOB NOT NULL,
    created_at INTEGER NOT NULL CHECK (created_at >= 0),
    PRIMARY KEY (run_id, content_hash, media_type),
    CHECK (byte_length = length(content))
) STRICT;

-- Shared lifecycle ---------------------------------------------------------------------------------------------

-- events: the revision of every aggregate.
CREATE TABLE resources (
    resource_id TEXT NOT NULL PRIMARY KEY,
    resource_type TEXT NOT NULL CHECK (
        resource_type IN (
            'run', 'session', 'decision', 'controller', 'effect', 'channel', 'settings', 'follow_up', 'message'
        )
    ),
    aggregate_key TEXT NOT NULL,
    revision INTEGER NOT NULL DEFAULT 0 CHECK (revision >= 0),
    created_at INTEGER NOT NULL CHECK (created_at >= 0),
    updated_at INTEGER NOT NULL CHECK (updated_at >= 0),
    UNIQUE (resource_type, aggregate_key)
) STRICT;

-- events: generation; process: the six owner columns. Who may write an aggregate now, and how many could so far.
CREATE TABLE leases (
    resource_id TEXT NOT NULL PRIMARY KEY REFERENCES resources (resource_id) ON DELETE CASCADE,
    generation INTEGER NOT NULL DEFAULT 0 CHECK (generation >= 0),
    owner_type TEXT CHECK (owner_type IN ('session', 'host', 'controller', 'channel', 'system')),
    owner_id TEXT,
    token_hash BLOB CHECK (length(token_hash) = 32),
    acquired_at INTEGER CHECK (acquired_at >= 0),
    heartbeat_at INTEGER CHECK (heartbeat_at >= 0),
    expires_at INTEGER CHECK (expires_at >= 0),
    CHECK (
        (owner_type IS NULL) = (owner_id IS NULL)
        AND (owner_type IS NULL) = (token_hash IS NULL)
        AND (owner_type IS NULL) = (acquired_at IS NULL)
        AND (owner_type IS NULL) = (heartbeat_at IS NULL)
        AND (owner_type IS NULL) = (expires_at IS NULL)
    )
) STRICT;
CREATE INDEX leases_expires_at ON leases (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX leases_owner ON leases (owner_type, owner_id) WHERE owner_type IS NOT NULL;

-- journal: the audit truth. AUTOINCREMENT keeps the number of a pruned event from being given again.
CREATE TABLE events (
    event_seq INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    event_id TEXT NOT NULL UNIQUE,
    resource_id TEXT NOT NULL REFERENCES resources (resource_id),
    resource_revision INTEGER NOT NULL CHECK (resource_revision > 0),
    event_type TEXT NOT NULL,
    actor_type TEXT NOT NULL CHECK (
        actor_type IN ('session', 'host', 'controller', 'channel', 'human', 'policy', 'control', 'system')
    ),
    actor_id TEXT,
    lease_generation INTEGER CHECK (lease_generation > 0),
    payload_hash BLOB NOT NULL REFERENCES blobs (blob_hash),
    event_digest BLOB NOT NULL CHECK (length(event_digest) = 32),
    recorded_at INTEGER NOT NULL CHECK (recorded_at >= 0),
    UNIQUE (resource_id, resource_revision)
) STRICT;
CREATE INDEX events_payload_hash ON events (payload_hash);

-- journal: every blob that an event's payload names; it lives as long as the event.
CREATE TABLE event_blobs (
    event_seq INTEGER NOT NULL REFERENCES events (event_seq) ON DELETE CASCADE,
    blob_hash BLOB NOT NULL REFERENCES blobs (blob_hash),
    PRIMARY KEY (event_seq, blob_hash)
) STRICT, WITHOUT ROWID;
CREATE INDEX event_blobs_blob_hash ON event_blobs (blob_hash);

-- process: the one live server. The row exists from the start, so that a claim is always an update.
CREATE TABLE workflow_host_state (
    id INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
    epoch INTEGER NOT NULL DEFAULT 0 CHECK (epoch >= 0),
    host_id TEXT,
    token_hash BLOB CHECK (length(token_hash) = 32),
    pid INTEGER CHECK (pid > 0),
    process_start_identity TEXT,
    started_at INTEGER CHECK (started_at >= 0),
    heartbeat_at INTEGER CHECK (heartbeat_at >= 0),
    expires_at INTEGER CHECK (expires_at >= 0),
    CHECK (
        (host_id IS NULL) = (token_hash IS NULL)
        AND (host_id IS NULL) = (pid IS NULL)
        AND (host_id IS NULL) = (process_start_identity IS NULL)
        AND (host_id IS NULL) = (started_at IS NULL)
        AND (host_id IS NULL) = (heartbeat_at IS NULL)
        AND (host_id IS NULL) = (expires_at IS NULL)
    )
) STRICT;
INSERT INTO workflow_host_state (id, epoch) VALUES (1, 0);

-- Server protocol ----------------------------------------------------------------------------------------------

-- journal: receipts of client commands. No run is named when none of that name exists, or its tree was pruned.
CREATE TABLE host_commands (
    request_id TEXT NOT NULL PRIMARY KEY,
    client_id TEXT NOT NULL,
    operation TEXT NOT NULL CHECK (length(operation) BETWEEN 1 AND 64),
    idempotency_key TEXT NOT NULL,
    request_fingerprint BLOB NOT NULL CHECK (length(request_fingerprint) = 32),
    run_id TEXT REFERENCES runs (run_id) ON DELETE SET NULL,
    accepted_revision INTEGER CHECK (accepted_revision >= 0),
    outcome TEXT NOT NULL CHECK (
        outcome IN ('accepted', 'adopted', 'rejected', 'conflict', 'notFound', 'claimLost', 'unavailable')
    ),
    receipt_hash BLOB REFERENCES blobs (blob_hash),
    error_hash BLOB REFERENCES blobs (blob_hash),
    host_epoch INTEGER NOT NULL CHECK (host_epoch > 0),
    row_digest BLOB NOT NULL CHECK (length(row_digest) = 32),
    created_at INTEGER NOT NULL CHECK (created_at >= 0),
    completed_at INTEGER NOT NULL CHECK (completed_at >= 0),
    UNIQUE (client_id, idempotency_key)
) STRICT;
CREATE INDEX host_commands_run_id ON host_commands (run_id, created_at);
CREATE INDEX host_commands_receipt_hash ON host_commands (receipt_hash) WHERE receipt_hash IS NOT NULL;
CREATE INDEX host_commands_error_hash ON host_commands (error_hash) WHERE error_hash IS NOT NULL;

-- process: one row a runner process.
CREATE TABLE run_workers (
    worker_epoch TEXT NOT NULL PRIMARY KEY,
    run_id TEXT NOT NULL REFERENCES runs (run_id) ON DELETE CASCADE,
    generation INTEGER NOT NULL CHECK (generation > 0),
    host_epoch INTEGER NOT NULL CHECK (host_epoch > 0),
    launch_envelope_hash BLOB NOT NULL REFERENCES blobs (blob_hash),
    launch_step_total INTEGER NOT NULL CHECK (launch_step_total >= 0),
    pid INTEGER,
    process_start_identity TEXT,
    status TEXT NOT NULL CHECK (
        status IN (
            'starting', 'ready', 'running', 'exited', 'cancelled', 'timedOut', 'crashed', 'claimLost', 'orphaned'
        )
    ),
    started_at INTEGER NOT NULL CHECK (started_at >= 0),
    ready_at INTEGER CHECK (ready_at >= 0),
    finished_at INTEGER CHECK (finished_at >= 0),
    exit_code INTEGER,
    signal TEXT,
    diagnostic_hash BLOB REFERENCES blobs (blob_hash),
    CHECK ((pid IS NULL) = (process_start_identity IS NULL))
) STRICT;
CREATE UNIQUE INDEX run_workers_live ON run_workers (run_id) WHERE status IN ('starting', 'ready', 'running');
CREATE INDEX run_workers_run_id ON run_workers (run_id, generation, started_at);
CREATE INDEX run_workers_launch_envelope_hash ON run_workers (launch_envelope_hash);
CREATE INDEX run_workers_diagnostic_hash ON run_workers (diagnostic_hash) WHERE diagnostic_hash IS NOT NULL;

-- journal: receipts of runner messages.
CREATE TABLE worker_messages (
    worker_epoch TEXT NOT NULL REFERENCES run_workers (worker_epoch) ON DELETE CASCADE,
    message_id TEXT NOT NULL,
    request_fingerprint BLOB NOT NULL CHECK (length(request_fingerprint) = 32),
    outcome TEXT NOT NULL CHECK (outcome IN ('accepted', 'adopted', 'rejected', 'claimLost')),
    accepted_revision INTEGER CHECK (accepted_revision >= 0),
    result_hash BLOB REFERENCES blobs (blob_hash),
    error_hash BLOB REFERENCES blobs (blob_hash),
    row_digest BLOB NOT NULL CHECK (length(row_digest) = 32),
    completed_at INTEGER NOT NULL CHECK (completed_at >= 0),
    PRIMARY KEY (worker_epoch, message_id)
) STRICT;
CREATE INDEX worker_messages_result_hash ON worker_messages (result_hash) WHERE result_hash IS NOT NULL;
CREATE INDEX worker_messages_error_hash ON worker_messages (error_hash) WHERE error_hash IS NOT NULL;

-- events: a durable question, at most one pending in a run.
CREATE TABLE interactive_requests (
    request_id TEXT NOT NULL PRIMARY KEY,
    run_id TEXT NOT NULL REFERENCES runs (run_id) ON DELETE CASCADE,
    attempt_id TEXT NOT NULL UNIQUE REFERENCES node_attempts (attempt_id) ON DELETE CASCADE,
    target_session_id TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('agent', 'assistant', 'checkpoint', 'decision')),
    contract_hash BLOB NOT NULL REFERENCES blobs (blob_hash),
    revision INTEGER NOT NULL DEFAULT 1 CHECK (revision > 0),
    status TEXT NOT NULL CHECK (status IN ('pending', 'settled', 'cancelled')),
    accepted_submission_id TEXT,
    created_at INTEGER NOT NULL CHECK (created_at >= 0),
    updated_at INTEGER NOT NULL CHECK (updated_at >= 0),
    settled_at INTEGER CHECK (settled_at >= 0),
    consumed_at INTEGER CHECK (consumed_at >= 0),
    CHECK (
        (status = 'settled') = (accepted_submission_id IS NOT NULL)
        AND (status = 'settled') = (settled_at IS NOT NULL)
    ),
    CHECK (consumed_at IS NULL OR status = 'settled')
) STRICT;
CREATE UNIQUE INDEX interactive_requests_pending ON interactive_requests (run_id) WHERE status = 'pending';
CREATE INDEX interactive_requests_target ON interactive_requests (target_session_id, status, created_at);
CREATE INDEX interactive_requests_run_id ON interactive_requests (run_id);
CREATE INDEX interactive_requests_contract_hash ON interactive_requests (contract_hash);

-- events: answers to a question, the refused ones included.
CREATE TABLE interactive_submissions (
    submission_id TEXT NOT NULL PRIMARY KEY,
    request_id TEXT NOT NULL REFERENCES interactive_requests (request_id) ON DELETE CASCADE,
    idempotency_key TEXT NOT NULL,
    request_revision INTEGER NOT NULL CHECK (request_revision > 0),
    payload_hash BLOB NOT NULL REFERENCES blobs (blob_hash),
    outcome TEXT NOT NULL CHECK (outcome IN ('validating', 'accepted', 'rejected', 'adopted')),
    receipt_hash BLOB REFERENCES blobs (blob_hash),
    submitted_at INTEGER NOT NULL CHECK (submitted_at >= 0),
    UNIQUE (request_id, idempotency_key)
) STRICT;
CREATE INDEX interactive_submissions_payload_hash ON interactive_submissions (payload_hash);
CREATE INDEX interactive_submissions_receipt_hash ON interactive_submissions (receipt_hash)
WHERE receipt_hash IS NOT NULL;

-- Workflows ----------------------------------------------------------------------------------------------------

-- events: definition snapshots by their digest.
CREATE TABLE workflow_definitions (
    definition_digest BLOB NOT NULL PRIMARY KEY CHECK (length(definition_digest) = 32),
    workflow_name TEXT NOT NULL,
    definition_hash BLOB NOT NULL REFERENCES blobs (blob_hash),
    created_at INTEGER NOT NULL CHECK (created_at >= 0)
) STRICT;
CREATE INDEX workflow_definitions_definition_hash ON workflow_definitions (definition_hash);

-- events: runs. The recovery pair is deferred: a run and the message that it recovers from may come in either order.
CREATE TABLE runs (
    run_id TEXT NOT NULL PRIMARY KEY,
    resource_id TEXT NOT NULL UNIQUE REFERENCES resources (resource_id) ON DELETE CASCADE,
    project_id TEXT REFERENCES projects (project_id),
    parent_run_id TEXT REFERENCES runs (run_id),
    root_run_id TEXT NOT NULL REFERENCES runs (run_id) ON DELETE CASCADE,
    recovery_root_run_id TEXT REFERENCES runs (run_id) DEFERRABLE INITIALLY DEFERRED,
    recovery_source_message_id TEXT
    REFERENCES workflow_messages (workflow_message_id) DEFERRABLE INITIALLY DEFERRED,
    lineage_kind TEXT CHECK (lineage_kind IN ('restart')),
    restart_number INTEGER NOT NULL DEFAULT 0 CHECK (restart_number >= 0),
    parent_run_revision INTEGER CHECK (parent_run_revision >= 0),
    definition_digest BLOB NOT NULL REFERENCES workflow_definitions (definition_digest),
    workflow_ref TEXT NOT NULL,
    launch_options_hash BLOB NOT NULL REFERENCES blobs (blob_hash),
    title TEXT,
    status TEXT NOT NULL CHECK (
        status IN ('queued', 'running', 'waiting', 'completed', 'failed', 'timed_out', 'cancelled')
    ),
    paused INTEGER NOT NULL DEFAULT 0 CHECK (paused IN (0, 1)),
    status_detail TEXT,
    input_hash BLOB NOT NULL REFERENCES blobs (blob_hash),
    final_output_hash BLOB REFERENCES blobs (blob_hash),
    error_hash BLOB REFERENCES blobs (blob_hash),
    created_at INTEGER NOT NULL CHECK (created_at >= 0),
    updated_at INTEGER NOT NULL CHECK (updated_at >= 0),
    finished_at INTEGER CHECK (finished_at >= 0),
    CHECK ((finished_at IS NOT NULL) = (status IN ('completed', 'failed', 'timed_out', 'cancelled'))),
    CHECK ((lineage_kind IS NULL) = (parent_run_id IS NULL)),
    CHECK ((lineage_kind IS NULL) = (parent_run_revision IS NULL)),
    CHECK ((recovery_root_run_id IS NULL) = (recovery_source_message_id IS NULL)),
    CHECK (parent_run_id IS NOT NULL OR restart_number = 0)
) STRICT;
CREATE UNIQUE INDEX runs_recovery_source_message_id ON runs (recovery_source_message_id)
WHERE recovery_source_message_id IS NOT NULL;
CREATE UNIQUE INDEX runs_restart ON runs (parent_run_id) WHERE lineage_kind = 'restart';
CREATE INDEX runs_project_id ON runs (project_id, created_at DESC);
CREATE INDEX runs_status ON runs (status, updated_at DESC);
CREATE INDEX runs_parent_run_id ON runs (parent_run_id) WHERE parent_run_id IS NOT NULL;
CREATE INDEX runs_root_run_id ON runs (root_run_id);
CREATE INDEX runs_recovery_root_run_id ON runs (recovery_root_run_id) WHERE recovery_root_run_id IS NOT NULL;
CREATE INDEX runs_definition_digest ON runs (definition_digest);
CREATE INDEX runs_launch_options_hash ON runs (launch_options_hash);
CREATE INDEX runs_input_hash ON runs (input_hash);
CREATE INDEX runs_final_output_hash ON runs (final_output_hash) WHERE final_output_hash IS NOT NULL;
CREATE INDEX runs_error_hash ON runs (error_hash) WHERE error_hash IS NOT NULL;

-- events: where each mounted definition came from. The root mount is the empty path.
CREATE TABLE run_sources (
    run_id TEXT NOT NULL REFERENCES runs (run_id) ON DELETE CASCADE,
    mount_path TEXT NOT NULL,
    source_type TEXT NOT NULL CHECK (source_type IN ('builtin', 'file')),
    source_ref TEXT NOT NULL,
    source_revision TEXT NOT NULL,
    PRIMARY KEY (run_id, mount_path)
) STRICT;

-- events: the session that a run came from, and how its agents work.
CREATE TABLE run_bindings (
    run_id TEXT NOT NULL PRIMARY KEY REFERENCES runs (run_id) ON DELETE CASCADE,
    origin_session_id TEXT NOT NULL,
    execution_mode TEXT NOT NULL CHECK (execution_mode IN ('interactive', 'headless')),
    created_at INTEGER NOT NULL CHECK (created_at >= 0)
) STRICT;
CREATE INDEX run_bindings_origin_session_id ON run_bindings (origin_session_id, created_at DESC);

-- events: scheduling. One nonterminal interactive run a session, waiting and paused ones included.
CREATE TABLE run_queue (
    run_id TEXT NOT NULL PRIMARY KEY REFERENCES runs (run_id) ON DELETE CASCADE,
    status TEXT NOT NULL CHECK (
        status IN ('queued', 'starting', 'running', 'parked', 'done', 'failed', 'cancelled')
    ),
    available_at INTEGER NOT NULL CHECK (available_at >= 0),
    origin_session_id TEXT,
    consecutive_errors INTEGER NOT NULL DEFAULT 0 CHECK (consecutive_errors >= 0),
    error_code TEXT,
    error_hash BLOB REFERENCES blobs (blob_hash),
    created_at INTEGER NOT NULL CHECK (created_at >= 0),
    updated_at INTEGER NOT NULL CHECK (updated_at >= 0),
    started_at INTEGER CHECK (started_at >= 0),
    finished_at INTEGER CHECK (finished_at >= 0)
) STRICT;
CREATE UNIQUE INDEX run_queue_session ON run_queue (origin_session_id)
WHERE origin_session_id IS NOT NULL AND status IN ('queued', 'starting', 'running', 'parked');
CREATE INDEX run_queue_status ON run_queue (status, available_at, created_at);
CREATE INDEX run_queue_error_hash ON run_queue (error_hash) WHERE error_hash IS NOT NULL;

-- events: tries of nodes. timeout_ms: null is not decided yet, 0 is unlimited.
CREATE TABLE node_attempts (
    attempt_id TEXT NOT NULL PRIMARY KEY,
    run_id TEXT NOT NULL REFERENCES runs (run_id) ON DELETE CASCADE,
    node_id TEXT NOT NULL,
    visit_number INTEGER NOT NULL CHECK (visit_number > 0),
    attempt_number INTEGER NOT NULL CHECK (attempt_number > 0),
    node_type TEXT NOT NULL,
    status TEXT NOT NULL CHECK (
        status IN ('pending', 'running', 'waiting', 'interrupted', 'completed', 'failed', 'timed_out', 'cancelled')
    ),
    prompt_hash BLOB REFERENCES blobs (blob_hash),
    output_hash BLOB REFERENCES blobs (blob_hash),
    receipt_hash BLOB REFERENCES blobs (blob_hash),
    error_hash BLOB REFERENCES blobs (blob_hash),
    settings_scope_id TEXT REFERENCES workflow_settings (scope_id),
    settings_change_number INTEGER CHECK (settings_change_number >= 0),
    settings_hash BLOB REFERENCES blobs (blob_hash),
    started_at INTEGER CHECK (started_at >= 0),
    timeout_ms INTEGER CHECK (timeout_ms >= 0),
    finished_at INTEGER CHECK (finished_at >= 0),
    created_at INTEGER NOT NULL CHECK (created_at >= 0),
    updated_at INTEGER NOT NULL CHECK (updated_at >= 0),
    UNIQUE (run_id, node_id, attempt_number)
) STRICT;
CREATE UNIQUE INDEX node_attempts_active ON node_attempts (run_id)
WHERE status IN ('pending', 'running', 'waiting');
CREATE INDEX node_attempts_run_id ON node_attempts (run_id, created_at);
CREATE INDEX node_attempts_prompt_hash ON node_attempts (prompt_hash) WHERE prompt_hash IS NOT NULL;
CREATE INDEX node_attempts_output_hash ON node_attempts (output_hash) WHERE output_hash IS NOT NULL;
CREATE INDEX node_attempts_receipt_hash ON node_attempts (receipt_hash) WHERE receipt_hash IS NOT NULL;
CREATE INDEX node_attempts_error_hash ON node_attempts (error_hash) WHERE error_hash IS NOT NULL;
CREATE INDEX node_attempts_settings_scope_id ON node_attempts (settings_scope_id)
WHERE settings_scope_id IS NOT NULL;
CREATE INDEX node_attempts_settings_hash ON node_attempts (settings_hash) WHERE settings_hash IS NOT NULL;

-- events: active time; process: the last sample of an open interval.
CREATE TABLE attempt_active_intervals (
    attempt_id TEXT NOT NULL REFERENCES node_attempts (attempt_id) ON DELETE CASCADE,
    interval_number INTEGER NOT NULL CHECK (interval_number > 0),
    started_at INTEGER NOT NULL CHECK (started_at >= 0),
    observed_at INTEGER NOT NULL CHECK (observed_at >= 0),
    ended_at INTEGER CHECK (ended_at >= 0),
    elapsed_ms INTEGER NOT NULL DEFAULT 0 CHECK (elapsed_ms >= 0),
    PRIMARY KEY (attempt_id, interval_number)
) STRICT;
CREATE UNIQUE INDEX attempt_active_intervals_open ON attempt_active_intervals (attempt_id)
WHERE ended_at IS NULL;

-- events: the order in which attempts settled.
CREATE TABLE run_steps (
    run_id TEXT NOT NULL REFERENCES runs (run_id) ON DELETE CASCADE,
    step_index INTEGER NOT NULL CHECK (step_index >= 0),
    attempt_id TEXT NOT NULL REFERENCES node_attempts (attempt_id),
    PRIMARY KEY (run_id, step_index),
    UNIQUE (run_id, attempt_id)
) STRICT;
CREATE INDEX run_steps_attempt_id ON run_steps (attempt_id);

-- events: progress that a node reported.
CREATE TABLE workflow_updates (
    update_id TEXT NOT NULL PRIMARY KEY,
    run_id TEXT NOT NULL REFERENCES runs (run_id) ON DELETE CASCADE,
    attempt_id TEXT NOT NULL REFERENCES node_attempts (attempt_id) ON DELETE CASCADE,
    update_seq INTEGER NOT NULL CHECK (update_seq > 0),
    run_revision INTEGER NOT NULL CHECK (run_revision > 0),
    update_type TEXT NOT NULL,
    update_key TEXT NOT NULL,
    data_hash BLOB NOT NULL REFERENCES blobs (blob_hash),
    recorded_at INTEGER NOT NULL CHECK (recorded_at >= 0),
    UNIQUE (attempt_id, update_seq)
) STRICT;
CREATE INDEX workflow_updates_key ON workflow_updates (run_id, update_type, update_key, run_revision DESC);
CREATE INDEX workflow_updates_data_hash ON workflow_updates (data_hash);

-- Settings and follow-ups --------------------------------------------------------------------------------------

-- events: settings scopes. The resource's revision is the number of the newest change.
CREATE TABLE workflow_settings (
    scope_id TEXT NOT NULL PRIMARY KEY,
    resource_id TEXT NOT NULL UNIQUE REFERENCES resources (resource_id) ON DELETE CASCADE,
    origin_run_id TEXT NOT NULL REFERENCES runs (run_id) ON DELETE CASCADE,
    active_run_id TEXT NOT NULL REFERENCES runs (run_id) ON DELETE CASCADE,
    mount_path TEXT NOT NULL,
    invocation INTEGER NOT NULL CHECK (invocation > 0),
    initial_hash BLOB NOT NULL REFERENCES blobs (blob_hash),
    current_hash BLOB NOT NULL REFERENCES blobs (blob_hash),
    created_at INTEGER NOT NULL CHECK (created_at >= 0),
    updated_at INTEGER NOT NULL CHECK (updated_at >= 0),
    UNIQUE (origin_run_id, mount_path, invocation)
) STRICT;
CREATE INDEX workflow_settings_active_run_id ON workflow_settings (active_run_id, mount_path, invocation);
CREATE INDEX workflow_settings_initial_hash ON workflow_settings (initial_hash);
CREATE INDEX workflow_settings_current_hash ON workflow_settings (current_hash);

-- events: accepted patches; immutable.
CREATE TABLE workflow_setting_changes (
    change_id TEXT NOT NULL PRIMARY KEY,
    scope_id TEXT NOT NULL REFERENCES workflow_settings (scope_id) ON DELETE CASCADE,
    request_id TEXT NOT NULL,
    change_number INTEGER NOT NULL CHECK (change_number > 0),
    actor_type TEXT NOT NULL CHECK (
        actor_type IN ('session', 'host', 'controller', 'channel', 'human', 'policy', 'control', 'system')
    ),
    actor_id TEXT,
    source_type TEXT NOT NULL,
    patch_hash BLOB NOT NULL REFERENCES blobs (blob_hash),
    before_hash BLOB NOT NULL REFERENCES blobs (blob_hash),
    after_hash BLOB NOT NULL REFERENCES blobs (blob_hash),
    accepted_at INTEGER NOT NULL CHECK (accepted_at >= 0),
    UNIQUE (scope_id, request_id),
    UNIQUE (scope_id, change_number)
) STRICT;
CREATE INDEX workflow_setting_changes_patch_hash ON workflow_setting_changes (patch_hash);
CREATE INDEX workflow_setting_changes_before_hash ON workflow_setting_changes (before_hash);
CREATE INDEX workflow_setting_changes_after_hash ON workflow_setting_changes (after_hash);

-- events: prompts for after a run.
CREATE TABLE workflow_follow_ups (
    follow_up_id TEXT NOT NULL PRIMARY KEY,
    resource_id TEXT NOT NULL UNIQUE REFERENCES resources (resource_id) ON DELETE CASCADE,
    run_id TEXT NOT NULL REFERENCES runs (run_id) ON DELETE CASCADE,
    request_id TEXT NOT NULL,
    order_number INTEGER NOT NULL CHECK (order_number > 0),
    target_session_id TEXT NOT NULL,
    actor_type TEXT NOT NULL CHECK (
        actor_type IN ('session', 'host', 'controller', 'channel', 'human', 'policy', 'control', 'system')
    ),
    actor_id TEXT,
    source_type TEXT NOT NULL,
    prompt_hash BLOB NOT NULL REFERENCES blobs (blob_hash),
    status TEXT NOT NULL CHECK (status IN ('queued', 'removed', 'cancelled')),
    reason_hash BLOB REFERENCES blobs (blob_hash),
    created_at INTEGER NOT NULL CHECK (created_at >= 0),
    updated_at INTEGER NOT NULL CHECK (updated_at >= 0),
    UNIQUE (run_id, request_id),
    UNIQUE (run_id, order_number),
    CHECK ((status = 'queued') = (reason_hash IS NULL))
) STRICT;
CREATE INDEX workflow_follow_ups_session ON workflow_follow_ups (target_session_id, run_id, order_number);
CREATE INDEX workflow_follow_ups_prompt_hash ON workflow_follow_ups (prompt_hash);
CREATE INDEX workflow_follow_ups_reason_hash ON workflow_follow_ups (reason_hash) WHERE reason_hash IS NOT NULL;

-- Session capture ----------------------------------------------------------------------------------------------

-- events: captures; their counters and running digests move with each flush of the journals below.
CREATE TABLE session_segments (
    segment_id TEXT NOT NULL PRIMARY KEY,
    run_id TEXT NOT NULL REFERENCES runs (run_id) ON DELETE CASCADE,
    attempt_id TEXT REFERENCES node_attempts (attempt_id),
    capture_key TEXT,
    session_id TEXT NOT NULL,
    resource_id TEXT NOT NULL UNIQUE REFERENCES resources (resource_id),
    binding_hash BLOB REFERENCES blobs (blob_hash),
    status TEXT NOT NULL CHECK (status IN ('recording', 'complete', 'failed')),
    entry_count INTEGER NOT NULL DEFAULT 0 CHECK (entry_count >= 0),
    event_count INTEGER NOT NULL DEFAULT 0 CHECK (event_count >= 0),
    entry_digest BLOB NOT NULL CHECK (length(entry_digest) = 32),
    event_digest BLOB NOT NULL CHECK (length(event_digest) = 32),
    failure_hash BLOB REFERENCES blobs (blob_hash),
    created_at INTEGER NOT NULL CHECK (created_at >= 0),
    finished_at INTEGER CHECK (finished_at >= 0)
) STRICT;
CREATE INDEX session_segments_run_id ON session_segments (run_id, created_at);
CREATE INDEX session_segments_attempt_id ON session_segments (attempt_id) WHERE attempt_id IS NOT NULL;
CREATE INDEX session_segments_binding_hash ON session_segments (binding_hash) WHERE binding_hash IS NOT NULL;
CREATE INDEX session_segments_failure_hash ON session_segments (failure_hash) WHERE failure_hash IS NOT NULL;

-- journal: the only copy of settled Pi entries.
CREATE TABLE session_entries (
    segment_id TEXT NOT NULL REFERENCES session_segments (segment_id) ON DELETE CASCADE,
    run_id TEXT NOT NULL REFERENCES runs (run_id) ON DELETE CASCADE,
    entry_seq INTEGER NOT NULL CHECK (entry_seq > 0),
    run_seq INTEGER NOT NULL CHECK (run_seq > 0),
    entry_id TEXT NOT NULL,
    entry_hash BLOB NOT NULL REFERENCES blobs (blob_hash),
    presentation_revision INTEGER NOT NULL CHECK (presentation_revision > 0),
    recorded_at INTEGER NOT NULL CHECK (recorded_at >= 0),
    PRIMARY KEY (segment_id, entry_seq),
    UNIQUE (segment_id, entry_id),
    UNIQUE (run_id, run_seq)
) STRICT;
CREATE INDEX session_entries_entry_hash ON session_entries (entry_hash);

-- journal: timing of a Pi session.
CREATE TABLE session_events (
    segment_id TEXT NOT NULL REFERENCES session_segments (segment_id) ON DELETE CASCADE,
    run_id TEXT NOT NULL REFERENCES runs (run_id) ON DELETE CASCADE,
    event_seq INTEGER NOT NULL CHECK (event_seq > 0),
    run_seq INTEGER NOT NULL CHECK (run_seq > 0),
    event_type TEXT NOT NULL,
    node_id TEXT,
    attempt_id TEXT,
    turn_id TEXT,
    message_id TEXT,
    tool_call_id TEXT,
    payload_hash BLOB NOT NULL REFERENCES blobs (blob_hash),
    presentation_revision INTEGER NOT NULL CHECK (presentation_revision > 0),
    recorded_at INTEGER NOT NULL CHECK (recorded_at >= 0),
    PRIMARY KEY (segment_id, event_seq),
    UNIQUE (run_id, run_seq)
) STRICT;
CREATE INDEX session_events_payload_hash ON session_events (payload_hash);

-- events: which captured entries belong to an attempt.
CREATE TABLE attempt_entries (
    attempt_id TEXT NOT NULL REFERENCES node_attempts (attempt_id) ON DELETE CASCADE,
    role TEXT NOT NULL CHECK (role IN ('prompt', 'response', 'first', 'last')),
    segment_id TEXT NOT NULL,
    entry_id TEXT NOT NULL,
    PRIMARY KEY (attempt_id, role),
    FOREIGN KEY (segment_id, entry_id) REFERENCES session_entries (segment_id, entry_id) ON DELETE CASCADE
) STRICT;
CREATE INDEX attempt_entries_entry ON attempt_entries (segment_id, entry_id);

-- Human decisions ----------------------------------------------------------------------------------------------

-- events: what a person is asked; immutable.
CREATE TABLE human_decisions (
    decision_id TEXT NOT NULL PRIMARY KEY,
    resource_id TEXT NOT NULL UNIQUE REFERENCES resources (resource_id),
    run_id TEXT NOT NULL REFERENCES runs (run_id) ON DELETE CASCADE,
    attempt_id TEXT NOT NULL REFERENCES node_attempts (attempt_id),
    audience TEXT NOT NULL,
    title TEXT NOT NULL,
    subject_hash BLOB NOT NULL REFERENCES blobs (blob_hash),
    presentation_hash BLOB NOT NULL REFERENCES blobs (blob_hash),
    choices_hash BLOB NOT NULL REFERENCES blobs (blob_hash),
    request_digest BLOB NOT NULL UNIQUE CHECK (length(request_digest) = 32),
    presentation_revision INTEGER NOT NULL CHECK (presentation_revision > 0),
    deadline_at INTEGER CHECK (deadline_at >= 0),
    default_response_hash BLOB REFERENCES blobs (blob_hash),
    request_hash BLOB NOT NULL REFERENCES blobs (blob_hash),
    created_at INTEGER NOT NULL CHECK (created_at >= 0)
) STRICT;
CREATE INDEX human_decisions_run_id ON human_decisions (run_id, created_at);
CREATE INDEX human_decisions_deadline_at ON human_decisions (deadline_at) WHERE deadline_at IS NOT NULL;
CREATE INDEX human_decisions_attempt_id ON human_decisions (attempt_id);
CREATE INDEX human_decisions_subject_hash ON human_decisions (subject_hash);
CREATE INDEX human_decisions_presentation_hash ON human_decisions (presentation_hash);
CREATE INDEX human_decisions_choices_hash ON human_decisions (choices_hash);
CREATE INDEX human_decisions_default_response_hash ON human_decisions (default_response_hash)
WHERE default_response_hash IS NOT NULL;
CREATE INDEX human_decisions_request_hash ON human_decisions (request_hash);

-- events: the one winner of a decision; immutable.
CREATE TABLE human_decision_resolutions (
    decision_id TEXT NOT NULL PRIMARY KEY REFERENCES human_decisions (decision_id) ON DELETE CASCADE,
    outcome TEXT NOT NULL CHECK (outcome IN ('accepted', 'cancelled')),
    provenance TEXT NOT NULL CHECK (
        provenance IN ('human', 'timeout_policy', 'explicit_cancel', 'expired_no_default')
    ),
    response_hash BLOB REFERENCES blobs (blob_hash),
    reason TEXT,
    channel TEXT,
    actor_id TEXT,
    request_digest BLOB NOT NULL CHECK (length(request_digest) = 32),
    resolved_at INTEGER NOT NULL CHECK (resolved_at >= 0),
    CHECK (
        (outcome = 'accepted') = (response_hash IS NOT NULL)
        AND (outcome = 'cancelled') = (reason IS NOT NULL)
    )
) STRICT;
CREATE INDEX human_decision_resolutions_response_hash ON human_decision_resolutions (response_hash)
WHERE response_hash IS NOT NULL;

-- events: candidates for a decision; attempt_id is the candidate's own, of no node.
CREATE TABLE human_decision_submissions (
    decision_id TEXT NOT NULL REFERENCES human_decisions (decision_id) ON DELETE CASCADE,
    attempt_id TEXT NOT NULL,
    source TEXT NOT NULL CHECK (source IN ('human', 'policy', 'control', 'channel')),
    actor_id TEXT,
    channel TEXT,
    candidate_hash BLOB NOT NULL REFERENCES blobs (blob_hash),
    outcome TEXT NOT NULL CHECK (outcome IN ('won', 'adopted', 'already_resolved', 'rejected')),
    result_hash BLOB REFERENCES blobs (blob_hash),
    submitted_at INTEGER NOT NULL CHECK (submitted_at >= 0),
    PRIMARY KEY (decision_id, attempt_id)
) STRICT;
CREATE INDEX human_decision_submissions_candidate_hash ON human_decision_submissions (candidate_hash);
CREATE INDEX human_decision_submissions_result_hash ON human_decision_submissions (result_hash)
WHERE result_hash IS NOT NULL;

-- Managed resources --------------------------------------------------------------------------------------------

-- events: desired and observed state.
CREATE TABLE controller_resources (
    controller_resource_id TEXT NOT NULL PRIMARY KEY,
    resource_id TEXT NOT NULL UNIQUE REFERENCES resources (resource_id) ON DELETE CASCADE,
    project_id TEXT REFERENCES projects (project_id),
    controller_name TEXT NOT NULL,
    resource_key TEXT NOT NULL,
    uid TEXT NOT NULL UNIQUE,
    generation INTEGER NOT NULL CHECK (generation > 0),
    spec_hash BLOB NOT NULL REFERENCES blobs (blob_hash),
    status_hash BLOB NOT NULL REFERENCES blobs (blob_hash),
    deletion_requested_at INTEGER CHECK (deletion_requested_at >= 0),
    created_at INTEGER NOT NULL CHECK (created_at >= 0),
    updated_at INTEGER NOT NULL CHECK (updated_at >= 0),
    UNIQUE (project_id, controller_name, resource_key)
) STRICT;
CREATE INDEX controller_resources_key ON controller_resources (controller_name, resource_key);
CREATE INDEX controller_resources_spec_hash ON controller_resources (spec_hash);
CREATE INDEX controller_resources_status_hash ON controller_resources (status_hash);

-- events: ordered guards against deletion.
CREATE TABLE controller_finalizers (
    controller_resource_id TEXT NOT NULL
    REFERENCES controller_resources (controller_resource_id) ON DELETE CASCADE,
    finalizer TEXT NOT NULL,
    position INTEGER NOT NULL CHECK (position >= 0),
    PRIMARY KEY (controller_resource_id, finalizer),
    UNIQUE (controller_resource_id, position)
) STRICT;

-- events: when to reconcile.
CREATE TABLE controller_queue (
    controller_resource_id TEXT NOT NULL PRIMARY KEY
    REFERENCES controller_resources (controller_resource_id) ON DELETE CASCADE,
    available_at INTEGER NOT NULL CHECK (available_at >= 0),
    queue_version INTEGER NOT NULL DEFAULT 1 CHECK (queue_version > 0),
    consecutive_errors INTEGER NOT NULL DEFAULT 0 CHECK (consecutive_errors >= 0),
    last_error_hash BLOB REFERENCES blobs (blob_hash),
    created_at INTEGER NOT NULL CHECK (created_at >= 0),
    updated_at INTEGER NOT NULL CHECK (updated_at >= 0)
) STRICT;
CREATE INDEX controller_queue_available_at ON controller_queue (available_at, created_at);
CREATE INDEX controller_queue_last_error_hash ON controller_queue (last_error_hash)
WHERE last_error_hash IS NOT NULL;

-- events: runs that a managed resource asked for. reserved_run_id names a run that may not exist yet.
CREATE TABLE controller_workflows (
    request_id TEXT NOT NULL PRIMARY KEY,
    controller_resource_id TEXT NOT NULL
    REFERENCES controller_resources (controller_resource_id) ON DELETE CASCADE,
    request_key TEXT NOT NULL,
    workflow_name TEXT NOT NULL,
    input_fingerprint BLOB NOT NULL CHECK (length(input_fingerprint) = 32),
    reserved_run_id TEXT,
    run_id TEXT REFERENCES runs (run_id),
    status TEXT NOT NULL CHECK (
        status IN ('pending', 'running', 'waiting', 'succeeded', 'failed', 'interrupted')
    ),
    attempt_count INTEGER NOT NULL DEFAULT 0 CHECK (attempt_count >= 0),
    error_hash BLOB REFERENCES blobs (blob_hash),
    created_at INTEGER NOT NULL CHECK (created_at >= 0),
    updated_at INTEGER NOT NULL CHECK (updated_at >= 0),
    UNIQUE (controller_resource_id, request_key)
) STRICT;
CREATE INDEX controller_workflows_run_id ON controller_workflows (run_id) WHERE run_id IS NOT NULL;
CREATE INDEX controller_workflows_error_hash ON controller_workflows (error_hash) WHERE error_hash IS NOT NULL;

-- Effects ------------------------------------------------------------------------------------------------------

-- events: the outbox. effect_id is derived from source, type and key.
CREATE TABLE effects (
    effect_id TEXT NOT NULL PRIMARY KEY,
    resource_id TEXT NOT NULL UNIQUE REFERENCES resources (resource_id),
    source_resource_id TEXT NOT NULL REFERENCES resources (resource_id),
    source_revision INTEGER NOT NULL CHECK (source_revision > 0),
    effect_type TEXT NOT NULL,
    idempotency_key TEXT NOT NULL,
    payload_hash BLOB NOT NULL REFERENCES blobs (blob_hash),
    owner_scope TEXT NOT NULL CHECK (owner_scope IN ('run', 'controller', 'channel', 'system')),
    status TEXT NOT NULL CHECK (
        status IN ('pending', 'applying', 'applied', 'rejected', 'ambiguous', 'cancelled')
    ),
    attempt_count INTEGER NOT NULL DEFAULT 0 CHECK (attempt_count >= 0),
    next_attempt_at INTEGER CHECK (next_attempt_at >= 0),
    result_hash BLOB REFERENCES blobs (blob_hash),
    external_ref TEXT,
    error_hash BLOB REFERENCES blobs (blob_hash),
    created_at INTEGER NOT NULL CHECK (created_at >= 0),
    updated_at INTEGER NOT NULL CHECK (updated_at >= 0),
    settled_at INTEGER CHECK (settled_at >= 0),
    UNIQUE (source_resource_id, effect_type, idempotency_key)
) STRICT;
CREATE INDEX effects_status ON effects (status, next_attempt_at, created_at);
CREATE INDEX effects_payload_hash ON effects (payload_hash);
CREATE INDEX effects_result_hash ON effects (result_hash) WHERE result_hash IS NOT NULL;
CREATE INDEX effects_error_hash ON effects (error_hash) WHERE error_hash IS NOT NULL;

-- events: numbered tries of an effect.
CREATE TABLE effect_attempts (
    effect_id TEXT NOT NULL REFERENCES effects (effect_id) ON DELETE CASCADE,
    attempt_number INTEGER NOT NULL CHECK (attempt_number > 0),
    owner_id TEXT NOT NULL,
    lease_generation INTEGER NOT NULL CHECK (lease_generation > 0),
    started_at INTEGER NOT NULL CHECK (started_at >= 0),
    finished_at INTEGER CHECK (finished_at >= 0),
    outcome TEXT CHECK (outcome IN ('applied', 'rejected', 'ambiguous', 'interrupted')),
    result_hash BLOB REFERENCES blobs (blob_hash),
    error_hash BLOB REFERENCES blobs (blob_hash),
    PRIMARY KEY (effect_id, attempt_number)
) STRICT;
CREATE INDEX effect_attempts_result_hash ON effect_attempts (result_hash) WHERE result_hash IS NOT NULL;
CREATE INDEX effect_attempts_error_hash ON effect_attempts (error_hash) WHERE error_hash IS NOT NULL;

-- Pi messages --------------------------------------------------------------------------------------------------

-- events: what Pi must add to a conversation.
CREATE TABLE workflow_messages (
    workflow_message_id TEXT NOT NULL PRIMARY KEY,
    run_id TEXT NOT NULL REFERENCES runs (run_id) ON DELETE CASCADE,
    target_session_id TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('step', 'decision', 'notification', 'terminal', 'followUp')),
    source_id TEXT NOT NULL,
    content_hash BLOB NOT NULL REFERENCES blobs (blob_hash),
    order_number INTEGER NOT NULL CHECK (order_number > 0),
    status TEXT NOT NULL CHECK (status IN ('pending', 'sent', 'cancelled')),
    pi_session_entry_id TEXT,
    recovery_stop TEXT CHECK (recovery_stop IN ('cancelled', 'timed_out', 'interrupted')),
    created_at INTEGER NOT NULL CHECK (created_at >= 0),
    updated_at INTEGER NOT NULL CHECK (updated_at >= 0),
    resource_id TEXT NOT NULL UNIQUE REFERENCES resources (resource_id),
    UNIQUE (target_session_id, order_number),
    CHECK ((status = 'sent') = (pi_session_entry_id IS NOT NULL))
) STRICT;
CREATE UNIQUE INDEX workflow_messages_pending_step ON workflow_messages (source_id)
WHERE kind = 'step' AND status = 'pending';
CREATE INDEX workflow_messages_session ON workflow_messages (target_session_id, status, order_number);
CREATE INDEX workflow_messages_run_id ON workflow_messages (run_id, order_number);
CREATE INDEX workflow_messages_source ON workflow_messages (kind, source_id, order_number);
CREATE INDEX workflow_messages_entry ON workflow_messages (target_session_id, pi_session_entry_id)
WHERE pi_session_entry_id IS NOT NULL;
CREATE INDEX workflow_messages_content_hash ON workflow_messages (content_hash);

-- events: who owns a Pi turn; process: the elapsed time of an open one.
CREATE TABLE workflow_turns (
    workflow_turn_id TEXT NOT NULL PRIMARY KEY,
    workflow_message_id TEXT NOT NULL REFERENCES workflow_messages (workflow_message_id) ON DELETE CASCADE,
    run_id TEXT NOT NULL REFERENCES runs (run_id) ON DELETE CASCADE,
    target_session_id TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('started', 'ended')),
    stop_reason TEXT CHECK (stop_reason IN ('completed', 'aborted', 'error', 'lost')),
    response_session_entry_id TEXT,
    active_elapsed_ms INTEGER NOT NULL DEFAULT 0 CHECK (active_elapsed_ms >= 0),
    started_at INTEGER NOT NULL CHECK (started_at >= 0),
    ended_at INTEGER CHECK (ended_at >= 0),
    CHECK (
        (state = 'started') = (stop_reason IS NULL)
        AND (state = 'started') = (ended_at IS NULL)
    )
) STRICT;
CREATE UNIQUE INDEX workflow_turns_open_message ON workflow_turns (workflow_message_id) WHERE state = 'started';
CREATE UNIQUE INDEX workflow_turns_open_session ON workflow_turns (target_session_id) WHERE state = 'started';
CREATE INDEX workflow_turns_session ON workflow_turns (target_session_id, state, started_at);
CREATE INDEX workflow_turns_workflow_message_id ON workflow_turns (workflow_message_id);
CREATE INDEX workflow_turns_run_id ON workflow_turns (run_id);

-- Channels -----------------------------------------------------------------------------------------------------

-- events: identities of adapters.
CREATE TABLE channels (
    channel_id TEXT NOT NULL PRIMARY KEY,
    resource_id TEXT NOT NULL UNIQUE REFERENCES resources (resource_id),
    adapter_type TEXT NOT NULL,
    profile_key TEXT NOT NULL,
    created_at INTEGER NOT NULL CHECK (created_at >= 0),
    UNIQUE (adapter_type, profile_key)
) STRICT;

-- events: the last accepted position of polling.
CREATE TABLE channel_cursors (
    channel_id TEXT NOT NULL REFERENCES channels (channel_id) ON DELETE CASCADE,
    cursor_key TEXT NOT NULL,
    cursor_value TEXT NOT NULL,
    updated_at INTEGER NOT NULL CHECK (updated_at >= 0),
    PRIMARY KEY (channel_id, cursor_key)
) STRICT;

-- events: deliveries and settlements of decisions; the status moves once, the rest never.
CREATE TABLE channel_messages (
    message_id TEXT NOT NULL PRIMARY KEY,
    channel_id TEXT NOT NULL REFERENCES channels (channel_id) ON DELETE CASCADE,
    decision_id TEXT REFERENCES human_decisions (decision_id),
    purpose TEXT NOT NULL CHECK (purpose IN ('delivery', 'settlement')),
    content_hash BLOB NOT NULL REFERENCES blobs (blob_hash),
    status TEXT NOT NULL CHECK (status IN ('pending', 'confirmed', 'failed', 'ambiguous')),
    created_at INTEGER NOT NULL CHECK (created_at >= 0),
    updated_at INTEGER NOT NULL CHECK (updated_at >= 0)
) STRICT;
CREATE INDEX channel_messages_decision_id ON channel_messages (decision_id, purpose, created_at);
CREATE INDEX channel_messages_channel_id ON channel_messages (channel_id);
CREATE INDEX channel_messages_content_hash ON channel_messages (content_hash);

-- Viewer -------------------------------------------------------------------------------------------------------

-- viewer: the cursor of a run's view, and the oldest revision whose patches are kept.
CREATE TABLE viewer_runs (
    run_id TEXT NOT NULL PRIMARY KEY REFERENCES runs (run_id) ON DELETE CASCADE,
    presentation_revision INTEGER NOT NULL CHECK (presentation_revision >= 1),
    retained_from_revision INTEGER NOT NULL,
    updated_at INTEGER NOT NULL CHECK (updated_at >= 0),
    CHECK (retained_from_revision BETWEEN 1 AND presentation_revision)
) STRICT;

-- viewer: ordered patches of one presentation revision.
CREATE TABLE viewer_deltas (
    run_id TEXT NOT NULL REFERENCES viewer_runs (run_id) ON DELETE CASCADE,
    presentation_revision INTEGER NOT NULL CHECK (presentation_revision >= 1),
    delta_index INTEGER NOT NULL CHECK (delta_index >= 0),
    target_type TEXT NOT NULL CHECK (
        target_type IN ('summary', 'graph', 'replay', 'timeline', 'conversation', 'inspector')
    ),
    target_key TEXT NOT NULL,
    patch_hash BLOB NOT NULL REFERENCES blobs (blob_hash),
    recorded_at INTEGER NOT NULL CHECK (recorded_at >= 0),
    PRIMARY KEY (run_id, presentation_revision, delta_index)
) STRICT;
CREATE INDEX viewer_deltas_patch_hash ON viewer_deltas (patch_hash);

-- viewer: the replay state at each 256th session event of a run.
CREATE TABLE viewer_session_checkpoints (
    run_id TEXT NOT NULL REFERENCES viewer_runs (run_id) ON DELETE CASCADE,
    event_seq INTEGER NOT NULL CHECK (event_seq > 0 AND event_seq % 256 = 0),
    state_hash BLOB NOT NULL REFERENCES blobs (blob_hash),
    recorded_at INTEGER NOT NULL CHECK (recorded_at >= 0),
    PRIMARY KEY (run_id, event_seq)
) STRICT;
CREATE INDEX viewer_session_checkpoints_state_hash ON viewer_session_checkpoints (state_hash);
