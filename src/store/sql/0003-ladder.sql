-- How far a deletion has come: the record of core/stop. When it goes on is
-- deadline_at, what went wrong last is reason.
ALTER TABLE sandbox
	ADD COLUMN stop_state text NOT NULL DEFAULT 'none'
		CHECK (stop_state IN ('none', 'needed', 'stopping', 'quarantined')),
	-- In flight, an attempt or a look; 0: none. Only its answer counts.
	ADD COLUMN stop_attempt bigint NOT NULL DEFAULT 0 CHECK (stop_attempt >= 0),
	ADD COLUMN stop_attempts integer NOT NULL DEFAULT 0 CHECK (stop_attempts >= 0),
	ADD COLUMN stop_rechecks integer NOT NULL DEFAULT 0 CHECK (stop_rechecks >= 0),
	ADD COLUMN quarantined_at timestamptz;
UPDATE sandbox SET stop_state = 'needed' WHERE state = 'deleting';

-- What happened to a sandbox, one row for every version of its record, written
-- with it. Only added to, and kept when the sandbox is gone.
CREATE TABLE sandbox_event (
	sandbox_id text COLLATE "C" NOT NULL,
	seq        bigint NOT NULL,
	at         timestamptz NOT NULL DEFAULT now(),
	event      text NOT NULL,
	from_state text NOT NULL,
	to_state   text NOT NULL,
	reason     text NOT NULL,
	attempt    bigint NOT NULL,
	PRIMARY KEY (sandbox_id, seq)
);
