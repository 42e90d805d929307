-- What somebody tried and was refused: one row per kind, source and sandbox in an hour.
CREATE TABLE incident (
	id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	hour       timestamptz NOT NULL,
	kind       text COLLATE "C" NOT NULL CHECK (octet_length(kind) BETWEEN 1 AND 23),
	source     text COLLATE "C" NOT NULL CHECK (octet_length(source) < 48),
	sandbox_id text COLLATE "C" NOT NULL,
	detail     text NOT NULL CHECK (octet_length(detail) < 160),
	first_at   timestamptz NOT NULL,
	last_at    timestamptz NOT NULL,
	count      bigint NOT NULL,
	UNIQUE (hour, kind, source, sandbox_id)
);
