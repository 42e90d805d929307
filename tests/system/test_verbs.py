"""Every verb of a sandbox, from one table: the ways to name the sandbox, and a sandbox that is being deleted."""
import pathlib
import re

from server import TOP
from test_deletion import DEV_ENV, held  # noqa: F401 - a deletion that takes its time, in less of it

WORK, FACT = "work", "fact"  # work needs the box; a fact is on record, and stays readable
EMPTY_TAR = bytes(1024)

# (method, path behind the sandbox, body, kind)
VERBS = [
    ("GET", "", None, FACT),
    ("PATCH", "", {"labels": {"a": "b"}}, WORK),
    ("POST", "/sleep", None, WORK),
    ("POST", "/wake", None, WORK),
    ("POST", "/exec", {"argv": ["true"]}, WORK),
    ("GET", "/execs", None, FACT),
    ("DELETE", "/execs", None, FACT),
    ("GET", "/execs/none", None, FACT),
    ("DELETE", "/execs/none", None, FACT),
    ("POST", "/execs/kill", {}, FACT),
    ("GET", "/execs/none/output", None, FACT),
    ("POST", "/execs/none/kill", {}, FACT),
    ("POST", "/execs/none/stdin", {"data": "x"}, FACT),
    ("GET", "/execs/none/wait", None, FACT),
    ("GET", "/files?path=/etc/none", None, WORK),
    ("PUT", "/files?path=/tmp/f", b"x", WORK),
    ("DELETE", "/files?path=/tmp/f", None, WORK),
    ("GET", "/files/stat?path=/", None, WORK),
    ("GET", "/files/list?path=/", None, WORK),
    ("GET", "/files/watch?path=/none", None, WORK),
    ("GET", "/files/tar?path=/etc", None, WORK),
    ("PUT", "/files/tar?path=/tmp", EMPTY_TAR, WORK),
    ("POST", "/files/mkdir", {"path": "/tmp/d", "parents": True}, WORK),
    ("POST", "/files/move", {"from": "/none", "to": "/none2"}, WORK),
    ("POST", "/shells", {}, WORK),
    ("GET", "/shells", None, FACT),
    ("GET", "/shells/none", None, FACT),
    ("DELETE", "/shells/none", None, FACT),
    ("POST", "/git/checkout", {"url": "file:///none"}, WORK),
    ("POST", "/terminals", {"id": "t", "argv": ["true"]}, WORK),
    ("GET", "/terminals", None, FACT),
    ("GET", "/terminals/none", None, FACT),
    ("DELETE", "/terminals/none", None, FACT),
    ("POST", "/terminals/none/resize", {"rows": 3, "columns": 4}, FACT),
    ("GET", "/terminals/none/attach", None, FACT),
    ("GET", "/usage", None, FACT),
    ("GET", "/wrappers", None, FACT),
    ("GET", "/wrappers/none", None, FACT),
    ("GET", "/wrappers/none/processes", None, FACT),
    ("PUT", "/wrappers/w", {"argv": ["true"]}, WORK),
    ("DELETE", "/wrappers/none", None, FACT),
    ("POST", "/wrappers/none/ready", {"instance": "i"}, FACT),
    ("POST", "/wrappers/none/accepted", {"instance": "i"}, FACT),
    ("POST", "/wrappers/none/settled", {"instance": "i"}, FACT),
    ("POST", "/wrappers/none/stop", {}, FACT),
    ("GET", "/receipt", None, FACT),
    ("GET", "/events", None, FACT),
    ("GET", "/network", None, FACT),
    ("PUT", "/network", {"mode": "none"}, WORK),
    ("POST", "/network/lock", None, WORK),
    ("GET", "/security", None, FACT),
    ("POST", "/contexts", {"language": "python"}, WORK),
    ("GET", "/contexts", None, FACT),
    ("GET", "/contexts/none", None, FACT),
    ("DELETE", "/contexts/none", None, FACT),
    ("POST", "/code", {"language": "python", "code": "1"}, WORK),
]


# What names no sandbox, in an order in which each finds something: (method, path, body, answers that are right)
OTHERS = [
    ("GET", "/health", None, {200}),
    ("GET", "/host", None, {200}),
    ("GET", "/hosts", None, {200}),
    ("GET", "/hosts/h1", None, {200}),
    ("DELETE", "/hosts/h1", None, {409}),  # it lives
    ("POST", "/hosts/h1/drain", None, {200}),
    ("POST", "/hosts/h1/undrain", None, {200}),
    ("GET", "/alerts?ended=1", None, {200}),
    ("GET", "/check", None, {200}),
    ("POST", "/check/repair", None, {200}),
    ("POST", "/check/abandon/sb_c1_00000000000000000000", None, {404}),
    ("GET", "/sandboxes", None, {200}),
    ("POST", "/sandboxes", {"image": "none"}, {404}),
    ("GET", "/security", None, {200}),
    ("GET", "/images", None, {200}),
    ("POST", "/images", {"name": "x", "reference": "127.0.0.1:1/none"}, {502, 503, 504}),
    ("PUT", "/images/x", EMPTY_TAR, {201, 400}),
    ("DELETE", "/images/x", None, {200, 404}),
    ("GET", "/policies", None, {200}),
    ("POST", "/policies", {"scope": "org", "subject": "verbs", "isolation": "shared"}, {200, 201}),
    ("DELETE", "/policies/0", None, {404}),
    ("GET", "/secrets", None, {200}),
    ("PUT", "/secrets/verbs", {"value": "not short", "host": "example.com", "header": "X-Key"}, {200, 201}),
    ("DELETE", "/secrets/verbs", None, {200}),
    ("GET", "/profiles", None, {200}),
    ("POST", "/profiles", {"name": "verbs", "memory_mb": 256}, {200, 201}),
    ("GET", "/profiles/verbs", None, {200}),
    ("DELETE", "/profiles/verbs", None, {200}),
    ("GET", "/usage", None, {200}),
    ("POST", "/keys", {"name": "verbs", "role": "user"}, {201}),
    ("GET", "/keys", None, {200}),
    ("DELETE", "/keys/key_none", None, {404}),
]


def generic(path):
    """/execs/none/kill as the route table has it: {} for what names a thing."""
    return re.sub(r"/(none|w)(?=/|$)", "/{}", path.split("?")[0])


def test_the_table_has_every_verb_of_a_sandbox(s):
    text = pathlib.Path(TOP, "src/berthd/main/routes.c").read_text()
    routes = set(re.findall(r'\{ "(\w+)",\s+"/v1/sandboxes/\{\}([^"]*)"', text))
    assert routes - {("DELETE", "")} == {(m, generic(p)) for m, p, _, _ in VERBS}


def test_the_other_routes_answer_each_of_them(s):
    text = pathlib.Path(TOP, "src/berthd/main/routes.c").read_text()
    routes = set(re.findall(r'\{ "(\w+)",\s+"/v1(/[^"]*)"', text))
    named = {(m, p) for m, p in routes if p.startswith("/sandboxes/{}")}
    tried = {(m, re.sub(r"/(h1|x|verbs|0|key_none|sb_c1_\w+)(?=/|$)", "/{}", p.split("?")[0])) for m, p, _, _ in OTHERS}
    assert routes - named - {("GET", "/events")} == tried
    wrong = []
    for method, path, body, right in OTHERS:
        status, answer, _ = s.api.request(method, "/v1" + path, body)
        if status not in right:
            wrong.append((method, path, status, answer))
    assert not wrong, "\n".join(map(str, wrong))
    told = s.api.connect()
    told.request("GET", "/v1/events", headers=s.api.headers())
    stream = told.getresponse()
    with s.box() as b:
        while b.id.encode() not in stream.readline():
            pass
    told.close()


def said(s, address, verb):
    """What the answer says, whichever sandbox it is of."""
    method, path, body, _ = verb
    status, answer, _ = s.api.request(method, f"/v1/sandboxes/{address}{path}", body)
    if not isinstance(answer, dict):
        return status, None, ""
    return status, answer.get("code"), re.sub(r"sb_\w+", "SANDBOX", answer.get("message") or "")


def test_every_verb_takes_a_name_or_an_identity_key_where_it_takes_an_id(s):
    """Three boxes, each told in its own way: every verb must say the same to all of them."""
    keyed = s.api.call("POST", "/v1/sandboxes", {"image": "base", "identity": {"org": "o", "user": "u", "session": "verbs"}})
    boxes = {s.api.create(): None, s.api.create(name="by-name"): "by-name", keyed["id"]: keyed["identity_key"]}
    try:
        for verb in VERBS:
            answers = [said(s, address or ident, verb) for ident, address in boxes.items()]
            assert answers[0] == answers[1] == answers[2], (verb, answers)
            status, _, message = answers[0]
            assert (status < 500 or status == 501) and "no sandbox" not in message, (verb, answers)
    finally:
        for ident in boxes:
            s.api.delete(ident)


def test_no_new_work_while_a_deletion_is_pending(s):
    """Verb by verb: work is refused in words that say why, what is on record can be read."""
    with held(s) as (ident, _):
        assert s.api.delete(ident)["state"] == "deleting"
        wrong = []
        for verb in VERBS:
            status, code, message = said(s, ident, verb)
            refused = status in (404, 409) and "is deleting" in message
            if refused != (verb[3] == WORK) or status >= 500:
                wrong.append((*verb, status, code, message))
        assert not wrong, "\n".join(str(w) for w in wrong)
