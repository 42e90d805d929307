-- Until now a policy was written before its sandbox, and stayed when that was
-- refused or deleted. Of those that are gone only what was counted is kept.
DELETE FROM sandbox_network n
WHERE n.connections + n.requests + n.bytes_out + n.bytes_in = 0
	AND NOT EXISTS (SELECT FROM sandbox s WHERE s.id = n.sandbox_id);
UPDATE sandbox_network n SET policy = '{"mode":"none"}'
WHERE NOT EXISTS (SELECT FROM sandbox s WHERE s.id = n.sandbox_id);
