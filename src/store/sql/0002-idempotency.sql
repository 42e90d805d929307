-- What was asked under a key, once and for all. The row is written in the
-- transaction that records the wish itself: there is never one without the other.
CREATE TABLE idempotency (
	owner      text COLLATE "C" NOT NULL CHECK (octet_length(owner) BETWEEN 1 AND 63),
	key        text COLLATE "C" NOT NULL CHECK (octet_length(key) BETWEEN 1 AND 128),
	request    text NOT NULL CHECK (octet_length(request) BETWEEN 1 AND 299),
	body_hash  text NOT NULL CHECK (octet_length(body_hash) = 64),
	sandbox_id text COLLATE "C" NOT NULL CHECK (octet_length(sandbox_id) BETWEEN 1 AND 63),
	-- The first answer, where the sandbox's own record does not tell it.
	status     integer CHECK (status BETWEEN 200 AND 599),
	response   text CHECK (octet_length(response) <= 4000),
	created_at timestamptz NOT NULL DEFAULT now(),
	PRIMARY KEY (owner, key),
	CHECK ((status IS NULL) = (response IS NULL))
);
