-- Code contexts. The interpreter itself lives and dies in the sandbox; this is
-- what it is started from, and how often it had to be.
CREATE TABLE context (
	id           text COLLATE "C" PRIMARY KEY CHECK (octet_length(id) BETWEEN 1 AND 63),
	sandbox_id   text COLLATE "C" NOT NULL REFERENCES sandbox (id) ON DELETE CASCADE,
	name         text COLLATE "C" NOT NULL CHECK (octet_length(name) BETWEEN 1 AND 63),
	language     text NOT NULL CHECK (language IN ('python', 'javascript', 'typescript')),
	cwd          text NOT NULL CHECK (octet_length(cwd) < 4096),
	env          text NOT NULL CHECK (octet_length(env) < 32768), -- a JSON object
	timeout_ms   bigint NOT NULL CHECK (timeout_ms >= 0),
	started      boolean NOT NULL DEFAULT false, -- it has had an interpreter
	runs         bigint NOT NULL DEFAULT 0,
	restarts     bigint NOT NULL DEFAULT 0,
	created_at   timestamptz NOT NULL DEFAULT now(),
	last_used_at timestamptz NOT NULL DEFAULT now(),
	UNIQUE (sandbox_id, name)
);
