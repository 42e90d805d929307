"""An answer is whole, is UTF-8, and has no words of the database's in it."""
import http.client
import urllib.parse

from client import ApiError
from marks import limit, only

LONG = "a" + "\u00e9" * 400


def raw(s, method, path, body=None, headers=None):
    c = http.client.HTTPConnection("127.0.0.1", s.port, timeout=60)
    try:
        c.request(method, path, body, {**s.api.headers(), **(headers or {})})
        r = c.getresponse()
        return r.status, r.read()
    finally:
        c.close()


@only("crun")
def test_every_answer_is_utf8(s):
    odd = ["%ff%fe", urllib.parse.quote(LONG[:30]), urllib.parse.quote(LONG)]
    with s.box() as b:
        about = [("GET", "/v1/sandboxes/{}"), ("GET", f"/v1/sandboxes/{b.id}/execs/{{}}"), ("GET", "/v1/profiles/{}"),
                 ("DELETE", "/v1/images/{}"), ("DELETE", "/v1/secrets/{}"), ("DELETE", "/v1/keys/{}"), ("GET", "/v1/hosts/{}"),
                 ("GET", f"/v1/sandboxes/{b.id}/contexts/{{}}"), ("GET", f"/v1/sandboxes/{b.id}/files?path=/{{}}"),
                 ("GET", "/v1/sandboxes?state={}"), ("GET", "/v1/sandboxes?selector={}=1")]
        for method, path in about:
            for text in odd:
                status, said = raw(s, method, path.format(text))
                assert status >= 400, (path, status)
                said.decode()  # raises what it is not
                assert b"database:" not in said and b"encoding" not in said, said
        for body in ('{"image":"base","%s":1}', '{"image":"base","env":{"%s":1}}', '{"image":"%s"}', '{"image":"base","labels":{"%s":"x"}}'):
            raw(s, "POST", "/v1/sandboxes", (body % LONG).encode())[1].decode()


@limit(240)
@only("crun")
def test_an_answer_that_is_too_long_is_an_error_and_not_half_of_it(s):
    with s.box() as b:
        for _ in range(125):  # each stands as six characters in JSON: some 75 MB in all
            s.api.exec(b.id, ["true", "\x01" * 100000])
        try:
            s.api.get(f"/v1/sandboxes/{b.id}/execs?limit=1000")
        except ApiError as e:
            assert e.status == 500 and "MiB" in str(e), e
        else:
            raise AssertionError("it was sent")
        assert len(s.api.get(f"/v1/sandboxes/{b.id}/execs?limit=10")["execs"]) == 10
