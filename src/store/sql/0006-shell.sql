-- The persistent shells of a sandbox, and what each was begun with: from this one
-- that is gone with its processes is begun again.
CREATE TABLE shell (
	sandbox_id text COLLATE "C" NOT NULL REFERENCES sandbox (id) ON DELETE CASCADE,
	name       text COLLATE "C" NOT NULL CHECK (octet_length(name) BETWEEN 1 AND 62),
	cwd        text NOT NULL CHECK (octet_length(cwd) <= 4095),
	env        text NOT NULL CHECK (octet_length(env) <= 65535),
	made_by    text NOT NULL DEFAULT '' CHECK (octet_length(made_by) IN (0, 128)),
	created_at timestamptz NOT NULL DEFAULT now(),
	PRIMARY KEY (sandbox_id, name)
);
