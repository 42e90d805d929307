-- What needs a person: something berth gave up on by itself. One row from when it
-- was given up until it has ended, kept as long as events are.
CREATE TABLE alert (
	id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	kind       text NOT NULL CHECK (octet_length(kind) BETWEEN 1 AND 31),
	sandbox_id text COLLATE "C" NOT NULL,
	subject    text COLLATE "C" NOT NULL DEFAULT '' CHECK (octet_length(subject) < 64),
	owner      text NOT NULL,
	host       text NOT NULL,
	message    text NOT NULL,
	raised_at  timestamptz NOT NULL DEFAULT now(),
	ended_at   timestamptz
);
-- Raised again while it lasts, it is the same one.
CREATE UNIQUE INDEX alert_open ON alert (sandbox_id, kind, subject) WHERE ended_at IS NULL;
INSERT INTO alert (kind, sandbox_id, owner, host, message)
	SELECT 'deletion_quarantined', id, owner, host, reason FROM sandbox
	WHERE stop_state = 'quarantined';
CREATE INDEX alert_ended ON alert (ended_at) WHERE ended_at IS NOT NULL;

-- The records of a host are read in pages, in order of id.
DROP INDEX sandbox_host;
CREATE INDEX sandbox_host ON sandbox (host, id);
