-- A host's right to run sandboxes, by the database's clock. Without a lease_until
-- the host has no lease: it is the only one of its cell and nobody takes it over.
ALTER TABLE host
	ADD COLUMN epoch bigint NOT NULL DEFAULT 0 CHECK (epoch >= 0),
	ADD COLUMN lease_until timestamptz,
	ADD COLUMN boot_id text NOT NULL DEFAULT '' CHECK (octet_length(boot_id) < 64),
	ADD COLUMN address text NOT NULL DEFAULT '' CHECK (octet_length(address) < 128),
	ADD COLUMN draining boolean NOT NULL DEFAULT false,
	-- Its lease was over and another took its epoch: what it ran may run elsewhere.
	ADD COLUMN lost_at timestamptz,
	ADD COLUMN lost_to text NOT NULL DEFAULT '' CHECK (octet_length(lost_to) < 64),
	ADD COLUMN removed_at timestamptz,
	-- What it has, as it said last; 0: it has not said.
	ADD COLUMN cpus bigint NOT NULL DEFAULT 0 CHECK (cpus >= 0),
	ADD COLUMN memory_mb bigint NOT NULL DEFAULT 0 CHECK (memory_mb >= 0),
	ADD COLUMN memory_free_mb bigint NOT NULL DEFAULT 0 CHECK (memory_free_mb >= 0),
	ADD COLUMN disk_mb bigint NOT NULL DEFAULT 0 CHECK (disk_mb >= 0),
	ADD COLUMN disk_free_mb bigint NOT NULL DEFAULT 0 CHECK (disk_free_mb >= 0),
	ADD COLUMN runtimes text NOT NULL DEFAULT '' CHECK (octet_length(runtimes) < 64);
CREATE INDEX host_lease ON host (lease_until) WHERE lost_at IS NULL AND removed_at IS NULL;

-- When its host should begin to build it without being asked: it came from a lost one.
ALTER TABLE sandbox ADD COLUMN build_at timestamptz;
CREATE INDEX sandbox_build ON sandbox (host, build_at) WHERE build_at IS NOT NULL;
