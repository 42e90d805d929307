-- Which version of the protocol a sandbox's init speaks, and which its host did when that was
-- compared: minor * 65536 + major. 0: not compared yet, as all that were made before this.
ALTER TABLE sandbox
	ADD COLUMN guest_version bigint NOT NULL DEFAULT 0 CHECK (guest_version BETWEEN 0 AND 4294967295),
	ADD COLUMN guest_compared bigint NOT NULL DEFAULT 0 CHECK (guest_compared BETWEEN 0 AND 4294967295);
