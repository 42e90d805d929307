-- How many files a process of a sandbox may have open there; 0: its berthd has not said.
ALTER TABLE host ADD COLUMN open_files bigint NOT NULL DEFAULT 0 CHECK (open_files >= 0);
