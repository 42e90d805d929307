-- For whom a session's choice was made. Rows from before do not say it, and are not compared.
ALTER TABLE agent_session
	ADD COLUMN identified boolean NOT NULL DEFAULT false,
	ADD COLUMN org text COLLATE "C" NOT NULL DEFAULT '' CHECK (octet_length(org) <= 200),
	ADD COLUMN user_id text COLLATE "C" NOT NULL DEFAULT '' CHECK (octet_length(user_id) <= 200),
	ADD COLUMN bot text COLLATE "C" NOT NULL DEFAULT '' CHECK (octet_length(bot) <= 200);
