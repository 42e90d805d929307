-- What a sandbox may reach. No row: nothing.
CREATE TABLE sandbox_network (
	sandbox_id  text COLLATE "C" PRIMARY KEY,
	owner       text COLLATE "C" NOT NULL,
	policy      text NOT NULL CHECK (octet_length(policy) <= 65536),
	locked      boolean NOT NULL DEFAULT false,
	-- Grows with every change; berth-egress takes no older one.
	version     bigint NOT NULL DEFAULT 1,
	-- What was used, of its whole life.
	connections bigint NOT NULL DEFAULT 0,
	requests    bigint NOT NULL DEFAULT 0,
	bytes_out   bigint NOT NULL DEFAULT 0,
	bytes_in    bigint NOT NULL DEFAULT 0,
	changed_at  timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX sandbox_network_owner ON sandbox_network (owner);

-- What was refused: the last thousand of every sandbox.
CREATE TABLE security_event (
	id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	sandbox_id text COLLATE "C" NOT NULL,
	at         timestamptz NOT NULL,
	kind       text NOT NULL CHECK (octet_length(kind) < 24),
	name       text NOT NULL CHECK (octet_length(name) < 254),
	port       bigint NOT NULL,
	rule       text NOT NULL CHECK (octet_length(rule) < 254),
	count      bigint NOT NULL
);
CREATE INDEX security_event_sandbox ON security_event (sandbox_id, id);

-- Credentials that are added outside. The value is sealed with the key of secret_key_file.
CREATE TABLE secret (
	owner      text COLLATE "C" NOT NULL CHECK (octet_length(owner) BETWEEN 1 AND 63),
	name       text COLLATE "C" NOT NULL CHECK (octet_length(name) BETWEEN 1 AND 63),
	host       text NOT NULL CHECK (octet_length(host) < 254),
	methods    text NOT NULL CHECK (octet_length(methods) < 80),
	paths      text NOT NULL CHECK (octet_length(paths) < 512),
	header     text NOT NULL CHECK (octet_length(header) < 64),
	sealed     text NOT NULL CHECK (octet_length(sealed) <= 8192),
	changed_at timestamptz NOT NULL DEFAULT now(),
	PRIMARY KEY (owner, name)
);
