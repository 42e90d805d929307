-- What the hosts of this cell prove to each other that they are: made once, by the
-- first berthd that looks.
CREATE TABLE cell (
	one    boolean PRIMARY KEY DEFAULT true CHECK (one),
	secret text NOT NULL CHECK (octet_length(secret) = 64)
);

-- Which host has the files of which image: only there it can be started.
CREATE TABLE image_copy (
	digest text COLLATE "C" NOT NULL CHECK (octet_length(digest) BETWEEN 1 AND 79),
	host   text COLLATE "C" NOT NULL REFERENCES host (id),
	PRIMARY KEY (digest, host)
);
INSERT INTO image_copy (digest, host) SELECT DISTINCT i.digest, h.id FROM image i, host h;
