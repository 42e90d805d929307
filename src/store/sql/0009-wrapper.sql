-- The leases of wrappers, the record of core/lease: one for each name in a
-- sandbox. They go with the sandbox, whose own end proves theirs.
CREATE TABLE wrapper (
	sandbox_id      text COLLATE "C" NOT NULL REFERENCES sandbox (id) ON DELETE CASCADE,
	name            text COLLATE "C" NOT NULL CHECK (octet_length(name) BETWEEN 1 AND 16),
	version         bigint NOT NULL DEFAULT 1,
	state           text NOT NULL DEFAULT 'none' CHECK (state IN ('none', 'starting', 'ready',
		'busy', 'warm', 'stop_needed', 'stopping', 'quarantined')),
	next_generation bigint NOT NULL DEFAULT 1 CHECK (next_generation > 0),
	instance        text COLLATE "C" NOT NULL DEFAULT '' CHECK (octet_length(instance) < 40),
	generation      bigint NOT NULL DEFAULT 0 CHECK (generation < next_generation),
	what            text NOT NULL DEFAULT '' CHECK (octet_length(what) < 65), -- it runs, hashed
	deadline_at     timestamptz,
	keep_warm_at    timestamptz,
	session_wide    boolean NOT NULL DEFAULT false,
	reason          text NOT NULL DEFAULT '' CHECK (octet_length(reason) < 64),
	-- The ladder, as in sandbox.
	requested_at    timestamptz,
	stop_attempt    bigint NOT NULL DEFAULT 0 CHECK (stop_attempt >= 0),
	stop_attempts   bigint NOT NULL DEFAULT 0 CHECK (stop_attempts >= 0),
	stop_rechecks   bigint NOT NULL DEFAULT 0 CHECK (stop_rechecks >= 0),
	last_error      text NOT NULL DEFAULT '' CHECK (octet_length(last_error) < 200),
	receipt         text NOT NULL DEFAULT '' CHECK (octet_length(receipt) <= 1000),
	created_at      timestamptz NOT NULL DEFAULT now(),
	PRIMARY KEY (sandbox_id, name),
	-- Who waits has a deadline.
	CHECK ((deadline_at IS NULL) = (state = 'none'))
);
CREATE INDEX wrapper_deadline ON wrapper (deadline_at) WHERE deadline_at IS NOT NULL;
