-- How many keys each owner has, for a limit that costs no look at all of them. A count is spread
-- over 16 rows, so that requests of one owner at the same time do not wait for each other; one row
-- may well be negative, their sum is the count. Sixteen short rows per owner stay for good.
CREATE TABLE idempotency_count (
	owner text COLLATE "C" NOT NULL,
	slot  integer NOT NULL,
	n     bigint NOT NULL,
	PRIMARY KEY (owner, slot)
) WITH (fillfactor = 50);
CREATE FUNCTION idempotency_counted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO idempotency_count AS c (owner, slot, n)
	SELECT owner, pg_backend_pid() % 16, CASE TG_OP WHEN 'INSERT' THEN count(*) ELSE -count(*) END
	FROM changed GROUP BY owner ORDER BY owner
	ON CONFLICT (owner, slot) DO UPDATE SET n = c.n + excluded.n;
	RETURN NULL;
END $$;
CREATE TRIGGER idempotency_added AFTER INSERT ON idempotency REFERENCING NEW TABLE AS changed
	FOR EACH STATEMENT EXECUTE FUNCTION idempotency_counted();
CREATE TRIGGER idempotency_removed AFTER DELETE ON idempotency REFERENCING OLD TABLE AS changed
	FOR EACH STATEMENT EXECUTE FUNCTION idempotency_counted();
-- The triggers' lock keeps writers away until this is committed.
INSERT INTO idempotency_count (owner, slot, n) SELECT owner, 0, count(*) FROM idempotency GROUP BY owner;
