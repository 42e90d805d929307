"""Web pages of the origins an operator names may call the API from a browser; those of others may not."""
import json
import subprocess

PAGE, OTHER = "https://app.example", "https://evil.example"
RUNTIMES = ("crun",)
DEV_OPTIONS = ["--cors-origin", PAGE, "--cors-origin", "http://localhost:3000"]


def ask(s, method, path, origin=None, **headers):
    """(status, headers) as a browser would see them; what the API sets for pages is under its own name."""
    conn = s.api.connect()
    try:
        more = {k.replace("_", "-"): v for k, v in headers.items()}
        conn.request(method, path, headers={**({"Origin": origin} if origin else {}), **more})
        r = conn.getresponse()
        r.read()
        return r.status, {k.lower(): v for k, v in r.getheaders()}
    finally:
        conn.close()


def allowed(headers):
    return {k: v for k, v in headers.items() if k.startswith("access-control-")}


def test_a_page_of_an_origin_that_is_named_may_read_answers_and_errors(s):
    key = f"Bearer {s.key}"
    for path, authorization, status in (("/v1/sandboxes", key, 200), ("/v1/sandboxes/nosuch", key, 404), ("/v1/nowhere", key, 404),
                                        ("/v1/sandboxes", "Bearer wrong", 401), ("/v1/health", "", 200)):
        got, headers = ask(s, "GET", path, PAGE, Authorization=authorization)
        assert got == status and headers["access-control-allow-origin"] == PAGE and headers["vary"] == "Origin", (path, headers)
        assert "X-Request-Id" in headers["access-control-expose-headers"], headers
        assert "access-control-allow-credentials" not in headers, headers
    for origin in (OTHER, "null", PAGE + ":443", PAGE.upper(), "http://app.example", None):
        got, headers = ask(s, "GET", "/v1/sandboxes", origin, Authorization=key)
        assert got == 200 and allowed(headers) == {} and headers["vary"] == "Origin", (origin, headers)


def test_a_browser_is_told_what_a_path_knows_before_it_sends_a_key(s):
    asks = {"Access_Control_Request_Method": "PUT", "Access_Control_Request_Headers": "authorization"}
    for path, methods in (("/v1/sandboxes", "POST, GET"), ("/v1/sandboxes/x/files", "GET, PUT, DELETE"), ("/v1/health", "GET"),
                          ("/v1/sandboxes/x%2Fy/exec", "POST")):
        status, headers = ask(s, "OPTIONS", path, "http://localhost:3000", **asks)
        assert status == 204 and headers["access-control-allow-methods"] == methods, (path, status, headers)
        assert headers["access-control-allow-origin"] == "http://localhost:3000" and headers["vary"] == "Origin", headers
        assert {"Authorization", "Idempotency-Key", "Content-Type"} <= set(headers["access-control-allow-headers"].split(", ")), headers
        assert headers["access-control-max-age"] == "600" and "*" not in str(allowed(headers)), headers
    assert ask(s, "OPTIONS", "/v1/nowhere", PAGE, **asks)[0] == 404
    assert ask(s, "OPTIONS", "/v1/sandboxes", PAGE)[0] == 405  # not a browser's question
    for origin in (OTHER, "null", None):
        status, headers = ask(s, "OPTIONS", "/v1/sandboxes", origin, **asks)
        assert status == 405 and allowed(headers) == {}, (origin, status, headers)


def test_a_page_streams_a_command(s):
    with s.box() as b:
        conn = s.api.connect()
        conn.request("POST", f"/v1/sandboxes/{b.id}/exec", body=b'{"command":"echo hi"}',
                     headers=s.api.headers({"Origin": PAGE, "Accept": "text/event-stream"}))
        r = conn.getresponse()
        assert r.status == 200 and r.getheader("Access-Control-Allow-Origin") == PAGE, r.getheaders()
        assert b"event: exit" in r.read()
        conn.close()


def test_an_origin_that_is_none_stops_berthd_with_words(s):
    conf = s.work / "cors.conf"
    conf.write_text((open(f"{s.dir}/berthd.conf").read()).replace("cors_origins = ", "cors_origins = * "))
    r = subprocess.run([str(s.build / "src/berthd/berthd"), "--config", str(conf)], capture_output=True, text=True, timeout=30)
    assert r.returncode != 0 and json.loads(r.stderr)["why"] == 'cors_origins has "*", which is no origin', (r.returncode, r.stderr)
    conf.unlink()
