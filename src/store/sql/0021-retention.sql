-- What is removed by its age is found by its age: rows come in the order of
-- time, so the smallest kind of index will do.
CREATE INDEX tombstone_deleted ON tombstone USING brin (deleted_at);
CREATE INDEX idempotency_created ON idempotency USING brin (created_at);
CREATE INDEX sandbox_event_at ON sandbox_event USING brin (at);
