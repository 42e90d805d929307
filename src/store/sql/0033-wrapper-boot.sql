-- On which host the instance of a lease was begun, and in which run of that machine: what ran
-- before its last start is gone. Empty: not known, and nothing follows.
ALTER TABLE wrapper
	ADD COLUMN host text COLLATE "C" NOT NULL DEFAULT '' CHECK (octet_length(host) < 64),
	ADD COLUMN boot_id text COLLATE "C" NOT NULL DEFAULT '' CHECK (octet_length(boot_id) < 37);
