-- What a sandbox may use: see core/limits. 0 is none, where that is allowed.
ALTER TABLE sandbox
	ADD COLUMN open_files  bigint NOT NULL DEFAULT 16384 CHECK (open_files > 0),
	ADD COLUMN cpu_ms      bigint NOT NULL DEFAULT 0 CHECK (cpu_ms >= 0),
	ADD COLUMN wall_ms     bigint NOT NULL DEFAULT 0 CHECK (wall_ms >= 0),
	ADD COLUMN grace_ms    bigint NOT NULL DEFAULT 60000 CHECK (grace_ms > 0),
	ADD COLUMN connections bigint NOT NULL DEFAULT 0 CHECK (connections >= 0),
	ADD COLUMN requests    bigint NOT NULL DEFAULT 0 CHECK (requests >= 0),
	ADD COLUMN bytes_out   bigint NOT NULL DEFAULT 0 CHECK (bytes_out >= 0),
	ADD COLUMN artifact_mb bigint NOT NULL DEFAULT 200 CHECK (artifact_mb >= 0),
	-- They were changed, and berth-node has not said yet that it did so.
	ADD COLUMN limits_pending boolean NOT NULL DEFAULT false;
UPDATE sandbox SET wall_ms = 1800000 WHERE profile <> '';
CREATE INDEX sandbox_limits_pending ON sandbox (host) WHERE limits_pending;

CREATE TABLE profile (
	name        text COLLATE "C" PRIMARY KEY CHECK (octet_length(name) BETWEEN 1 AND 31),
	memory_mb   bigint NOT NULL,
	cpu_milli   bigint NOT NULL,
	pids        bigint NOT NULL,
	disk_mb     bigint NOT NULL,
	open_files  bigint NOT NULL,
	cpu_ms      bigint NOT NULL,
	wall_ms     bigint NOT NULL,
	grace_ms    bigint NOT NULL,
	connections bigint NOT NULL,
	requests    bigint NOT NULL,
	bytes_out   bigint NOT NULL,
	artifact_mb bigint NOT NULL,
	built_in    boolean NOT NULL DEFAULT false,
	created_at  timestamptz NOT NULL DEFAULT now()
);
INSERT INTO profile (name, memory_mb, cpu_milli, pids, disk_mb, open_files, cpu_ms, wall_ms,
	grace_ms, connections, requests, bytes_out, artifact_mb, built_in)
SELECT name, memory_mb, cpu_milli, pids, disk_mb, 16384, cpu_ms, wall_ms, 60000, 0, requests, 0, 200,
	true
FROM (VALUES
	('small',             6144,  1000, 512,  12288, 0,      1800000, 0),
	('standard',          12288, 4000, 1024, 20480, 0,      1800000, 0),
	('elicitation',       256,   1000, 256,  2048,  30000,  300000,  10),
	('test_writer',       512,   1000, 256,  2048,  60000,  600000,  20),
	('implementation',    1024,  1000, 256,  2048,  120000, 900000,  50),
	('context_gathering', 256,   1000, 256,  2048,  30000,  300000,  30),
	('validation',        512,   1000, 256,  2048,  60000,  600000,  20)
) AS p (name, memory_mb, cpu_milli, pids, disk_mb, cpu_ms, wall_ms, requests);

-- What was used, by each allocation a sandbox had; kept when the sandbox is gone.
CREATE TABLE usage (
	sandbox_id        text COLLATE "C" NOT NULL,
	since_ms          bigint NOT NULL, -- when the allocation was made, by its host's clock
	owner             text COLLATE "C" NOT NULL,
	host              text COLLATE "C" NOT NULL,
	profile           text NOT NULL,
	cpu_us            bigint NOT NULL CHECK (cpu_us >= 0),
	memory_peak_bytes bigint NOT NULL CHECK (memory_peak_bytes >= 0),
	memory_sum_mb     bigint NOT NULL CHECK (memory_sum_mb >= 0), -- of all looks
	memory_looks      bigint NOT NULL CHECK (memory_looks >= 0),
	disk_peak_bytes   bigint NOT NULL CHECK (disk_peak_bytes >= 0),
	pids_peak         bigint NOT NULL CHECK (pids_peak >= 0),
	oom_kills         bigint NOT NULL CHECK (oom_kills >= 0),
	seen_at           timestamptz NOT NULL DEFAULT now(),
	PRIMARY KEY (sandbox_id, since_ms)
);
CREATE INDEX usage_owner ON usage (owner, sandbox_id);
