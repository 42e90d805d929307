"""Two hosts, one database: each by itself."""
CELL = {"hosts": 2}


def test_each_host_runs_its_own(c):
    for h in c.hosts:
        ident = h.api.create(host=h.name)
        assert h.api.exec(ident, ["echo", h.name]).out.decode().strip() == h.name
        assert h.pids(ident)
    assert sorted(host for _, host, _, _ in c.rows()) == ["h1", "h2"]


def test_every_host_lists_all(c):
    made = {h.api.create() for h in c.hosts}
    for h in c.hosts:
        assert {b["id"] for b in h.api.sandboxes()} == made


def test_the_daemons_of_a_host_are_killed_and_come_back(c):
    ident = c.hosts[0].api.create(host="h1")
    pids = c.hosts[0].pids(ident)
    c.hosts[0].restart()
    assert min(pids) in c.hosts[0].pids(ident)
    assert c.hosts[0].api.exec(ident, ["true"]).exit_code == 0


def test_whoever_is_in_a_box_can_look_around(c):
    """The services have a umask of their own; what they make for a box has not. The image says nothing of its root."""
    h = c.hosts[0]
    ident = h.api.create(host=h.name)
    said = h.api.exec(ident, "stat -c %a / /etc/hosts /etc/resolv.conf").out.split()
    assert said == [b"755", b"644", b"644"], said
