-- What a later version might bring: each record says by which it was made, so an older
-- program that wrote on would leave it out.
ALTER TABLE sandbox ADD COLUMN made_by text NOT NULL DEFAULT 'before';
ALTER TABLE sandbox ALTER COLUMN made_by SET DEFAULT 'next';
