"""What is over is removed when its time has come; nothing of a sandbox that was not seen gone."""
from marks import limit
from server import wait_until
from test_admission import settings
from test_check import sql
from test_identity import post, who

RUNTIMES = ("crun",)  # records only
ALL = ("tombstones", "idempotency", "events", "usage", "sessions", "caps", "network", "alerts", "security", "incidents")


def kept(s, box, session):
    """Of which tables there are rows."""
    of = {"tombstone": f"id = '{box}'", "sandbox_event": f"sandbox_id = '{box}'", "usage": f"sandbox_id = '{box}'",
          "idempotency": f"sandbox_id = '{box}'", "agent_session": f"session = '{session}'", "cap": f"subject LIKE '%{session}%'"}
    return {table for table, where in of.items() if sql(s, f"SELECT 1 FROM {table} WHERE {where} LIMIT 1")}


@limit(300)
def test_records_are_removed_after_their_time_and_not_while_something_undead_is_there(s):
    made = {name: post(s.api, who(org=name, user="u", session=name), "key-" + name)[1]["id"] for name in ("over", "undead", "living")}
    for box in made.values():
        assert s.api.exec(box, "echo used").out == b"used\n"
    s.api.delete(made["over"])
    # As a deletion that was given up: what it is of is still there, and only looked at in an hour.
    sql(s, f"""UPDATE sandbox SET state = 'deleting', stop_state = 'quarantined', stop_attempts = 6, version = version + 1,
        deadline_at = now() + interval '1 hour' WHERE id = '{made["undead"]}'""")
    before = {name: kept(s, box, name) for name, box in made.items()}
    assert {"tombstone", "sandbox_event", "agent_session", "idempotency"} <= before["over"], before
    settings(s, **{"retention_" + name: "2s" for name in ALL})
    try:
        wait_until(lambda: not kept(s, made["over"], "over"), 90, "all of it removed")
        assert s.api.request("GET", "/v1/sandboxes/" + made["over"])[0] == 404
        wait_until(lambda: "idempotency" not in kept(s, made["living"], "living"), 60, "what is old of one that lives")
        assert "agent_session" in kept(s, made["living"], "living")
        assert kept(s, made["undead"], "undead") >= before["undead"], (before, kept(s, made["undead"], "undead"))
        assert s.api.exec(made["living"], "echo on").out == b"on\n" and s.healthy()
        s.api.delete(made["undead"])  # by hand: now it is proven, and then forgotten
        wait_until(lambda: not kept(s, made["undead"], "undead"), 90, "forgotten")
    finally:
        settings(s, **{"retention_" + name: None for name in ALL})
    s.api.delete(made["living"])
