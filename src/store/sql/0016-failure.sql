-- Why a sandbox failed last, and whether its files were kept. It stays when it is woken.
ALTER TABLE sandbox
	ADD COLUMN failed_at timestamptz,
	ADD COLUMN failed_why text NOT NULL DEFAULT '' CHECK (octet_length(failed_why) < 1024),
	ADD COLUMN files_kept boolean NOT NULL DEFAULT true;
-- What is being deleted, or has nothing left, does not lock its owner out: the name and the
-- identity are those of one that can be used.
DROP INDEX sandbox_name;
DROP INDEX sandbox_identity;
CREATE UNIQUE INDEX sandbox_name ON sandbox (name, owner)
	WHERE name <> '' AND state <> 'deleting' AND files_kept;
CREATE UNIQUE INDEX sandbox_identity ON sandbox (identity_key, owner)
	WHERE identity_key <> '' AND state <> 'deleting' AND files_kept;
CREATE INDEX sandbox_name_any ON sandbox (name) WHERE name <> '';
CREATE INDEX sandbox_identity_any ON sandbox (identity_key) WHERE identity_key <> '';
