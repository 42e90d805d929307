-- Which mode a policy has, for the record of its sandbox: read once, when it is written.
ALTER TABLE sandbox_network
	ADD COLUMN mode text GENERATED ALWAYS AS (policy::json ->> 'mode') STORED;
