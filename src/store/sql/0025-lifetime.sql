-- When a sandbox is to be deleted; NULL: never. Until now the server's max_age_s decided.
ALTER TABLE sandbox ADD COLUMN expires_at timestamptz;
