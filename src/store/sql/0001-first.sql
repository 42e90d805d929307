-- Every time is the database's own: now() when the row was written.

CREATE TABLE api_key (
	id         text COLLATE "C" PRIMARY KEY CHECK (octet_length(id) BETWEEN 1 AND 63),
	hash       text COLLATE "C" NOT NULL UNIQUE CHECK (octet_length(hash) = 64),
	name       text NOT NULL CHECK (octet_length(name) < 64),
	owner      text NOT NULL CHECK (octet_length(owner) BETWEEN 1 AND 63),
	role       text NOT NULL CHECK (role IN ('user', 'admin')),
	created_at timestamptz NOT NULL DEFAULT now(),
	revoked_at timestamptz
);

CREATE TABLE host (
	id         text COLLATE "C" PRIMARY KEY CHECK (octet_length(id) BETWEEN 1 AND 63),
	version    text NOT NULL,
	created_at timestamptz NOT NULL DEFAULT now(),
	seen_at    timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE image (
	name       text COLLATE "C" PRIMARY KEY CHECK (octet_length(name) BETWEEN 1 AND 255),
	digest     text COLLATE "C" NOT NULL CHECK (octet_length(digest) BETWEEN 1 AND 79),
	source     text NOT NULL CHECK (octet_length(source) < 512),
	bytes      bigint NOT NULL CHECK (bytes >= 0),
	created_at timestamptz NOT NULL DEFAULT now()
);

-- What should be. A row exists from before the first physical part of the
-- sandbox does until after the last one was observed gone.
CREATE TABLE sandbox (
	id           text COLLATE "C" PRIMARY KEY CHECK (octet_length(id) BETWEEN 1 AND 63),
	owner        text COLLATE "C" NOT NULL CHECK (octet_length(owner) BETWEEN 1 AND 63),
	image        text COLLATE "C" NOT NULL REFERENCES image (name),
	image_digest text COLLATE "C" NOT NULL,
	runtime      text NOT NULL CHECK (octet_length(runtime) BETWEEN 1 AND 15),
	host         text COLLATE "C" NOT NULL CHECK (octet_length(host) BETWEEN 1 AND 63),
	generation   bigint NOT NULL CHECK (generation > 0),
	state        text NOT NULL CHECK (state IN ('creating', 'ready', 'deleting', 'failed')),
	memory_mb    bigint NOT NULL CHECK (memory_mb > 0),
	cpu_milli    bigint NOT NULL CHECK (cpu_milli > 0),
	pids         bigint NOT NULL CHECK (pids > 0),
	disk_mb      bigint NOT NULL CHECK (disk_mb > 0),
	created_at   timestamptz NOT NULL DEFAULT now(),
	version      bigint NOT NULL DEFAULT 1,
	deadline_at  timestamptz,
	reason       text NOT NULL DEFAULT '' CHECK (octet_length(reason) < 200),
	-- Who waits has a deadline.
	CHECK (deadline_at IS NOT NULL OR state NOT IN ('creating', 'deleting'))
);
CREATE INDEX sandbox_owner ON sandbox (owner, id);
CREATE INDEX sandbox_host ON sandbox (host);
CREATE INDEX sandbox_image ON sandbox (image);
CREATE INDEX sandbox_deadline ON sandbox (host, deadline_at) WHERE deadline_at IS NOT NULL;

-- What is left of one that is gone: the proof.
CREATE TABLE tombstone (
	id         text COLLATE "C" PRIMARY KEY,
	owner      text COLLATE "C" NOT NULL,
	host       text COLLATE "C" NOT NULL,
	generation bigint NOT NULL,
	deleted_at timestamptz NOT NULL DEFAULT now(),
	receipt    text NOT NULL CHECK (octet_length(receipt) <= 2000)
);
