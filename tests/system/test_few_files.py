"""A host whose daemons may open few files, and may not raise that: what a container often is."""
from client import ApiError
from marks import limit

RUNTIMES = ("crun",)
FILES = 4096
DEV_PREFIX = ["prlimit", f"--nofile={FILES}:{FILES}", "setpriv", "--bounding-set=-sys_resource", "--inh-caps=-sys_resource"]


def refused(s, **options):
    try:
        raise AssertionError(s.api.create(**options))
    except ApiError as e:
        return e


@limit(60)
def test_a_sandbox_has_what_the_host_can_give_and_its_record_says_so(s):
    with s.box() as b:
        record = s.api.get("/v1/sandboxes/" + b.id)
        assert record["open_files"] == FILES, record
        assert b.sh("ulimit -Hn").split() == [str(FILES)]
    for more in ({"open_files": FILES + 1}, {"profile": "many"}):
        if "profile" in more:
            s.api.call("POST", "/v1/profiles", {"name": "many", "open_files": 20000})
        e = refused(s, **more)
        assert e.status == 400 and "open_files" in str(e) and str(FILES) in str(e), e
