-- By what a sandbox is found again, what it is for, and how it rests.
ALTER TABLE sandbox
	ADD COLUMN name text COLLATE "C" NOT NULL DEFAULT '' CHECK (octet_length(name) < 64),
	ADD COLUMN identity_key text COLLATE "C" NOT NULL DEFAULT ''
		CHECK (octet_length(identity_key) <= 640),
	ADD COLUMN isolation text NOT NULL DEFAULT ''
		CHECK (isolation IN ('', 'per_session', 'shared')),
	ADD COLUMN profile text NOT NULL DEFAULT '' CHECK (octet_length(profile) < 32),
	-- Whose cap it counts for; empty: nobody's.
	ADD COLUMN cap_subject text COLLATE "C" NOT NULL DEFAULT ''
		CHECK (octet_length(cap_subject) < 280),
	ADD COLUMN labels jsonb NOT NULL DEFAULT '{}' CHECK (octet_length(labels::text) < 2048),
	ADD COLUMN env text NOT NULL DEFAULT '{}' CHECK (octet_length(env) < 8192),
	ADD COLUMN sleep_after_ms bigint NOT NULL DEFAULT 0 CHECK (sleep_after_ms >= 0),
	ADD COLUMN keep_alive boolean NOT NULL DEFAULT false,
	ADD COLUMN last_used_at timestamptz NOT NULL DEFAULT now(),
	ADD COLUMN busy_since timestamptz,
	DROP CONSTRAINT sandbox_state_check,
	ADD CONSTRAINT sandbox_state_check CHECK (state IN
		('creating', 'ready', 'falling_asleep', 'asleep', 'waking', 'deleting', 'failed')),
	DROP CONSTRAINT sandbox_check,
	-- Who waits has a deadline.
	ADD CONSTRAINT sandbox_check CHECK (deadline_at IS NOT NULL OR
		state NOT IN ('creating', 'falling_asleep', 'waking', 'deleting'));
-- One owner has one sandbox of a name and one of an identity.
CREATE UNIQUE INDEX sandbox_name ON sandbox (name, owner) WHERE name <> '';
CREATE UNIQUE INDEX sandbox_identity ON sandbox (identity_key, owner) WHERE identity_key <> '';
CREATE INDEX sandbox_cap ON sandbox (cap_subject) WHERE cap_subject <> '';
CREATE INDEX sandbox_labels ON sandbox USING gin (labels) WHERE labels <> '{}';

-- Locked by whoever counts the sandboxes of one subject, until it has added its own.
CREATE TABLE cap (
	subject text COLLATE "C" PRIMARY KEY CHECK (octet_length(subject) BETWEEN 1 AND 279),
	locked_at timestamptz NOT NULL DEFAULT now()
);

-- What decides, for a new agent session, which sandbox it gets. '' is left open.
CREATE TABLE policy (
	id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	scope      text NOT NULL CHECK (scope IN ('global', 'org', 'user', 'session')),
	subject    text COLLATE "C" NOT NULL CHECK (octet_length(subject) BETWEEN 1 AND 200),
	isolation  text NOT NULL CHECK (isolation IN ('', 'per_session', 'shared')),
	profile    text NOT NULL CHECK (octet_length(profile) < 32),
	runtime    text NOT NULL CHECK (octet_length(runtime) < 16),
	created_at timestamptz NOT NULL DEFAULT now()
);

-- What was decided for it, once and for all, before its sandbox was first used.
CREATE TABLE agent_session (
	owner        text COLLATE "C" NOT NULL CHECK (octet_length(owner) BETWEEN 1 AND 63),
	session      text COLLATE "C" NOT NULL CHECK (octet_length(session) BETWEEN 1 AND 200),
	identity_key text COLLATE "C" NOT NULL CHECK (octet_length(identity_key) BETWEEN 1 AND 640),
	isolation    text NOT NULL CHECK (isolation IN ('per_session', 'shared')),
	profile      text NOT NULL CHECK (octet_length(profile) BETWEEN 1 AND 31),
	runtime      text NOT NULL CHECK (octet_length(runtime) < 16),
	policy_id    bigint NOT NULL,
	created_at   timestamptz NOT NULL DEFAULT now(),
	PRIMARY KEY (owner, session)
);
