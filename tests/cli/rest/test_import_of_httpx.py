"""httpx is imported without the modules for cookies, and is itself otherwise."""

from __future__ import annotations

import subprocess
import sys

CODE = """
import sys
from pyconnect_cli.rest.exchange import import_httpx
import_httpx()
import httpx
assert "http.cookiejar" not in sys.modules and "urllib.request" not in sys.modules
def answer(request):
    return httpx.Response(200, headers={"Set-Cookie": "a=b"}, json=[request.headers.get("cookie")])
with httpx.Client(transport=httpx.MockTransport(answer), verify=False) as client:
    assert [client.get("http://worker/").json() for _ in range(2)] == [[None], [None]]
    proxies = sorted(httpx._utils.get_environment_proxies())
import urllib.request, http.cookiejar
assert urllib.request.Request("http://worker/").host == "worker"
assert len(http.cookiejar.CookieJar()) == 0
print(*proxies)
"""


def test_httpx_comes_without_cookies_and_knows_the_proxies_of_the_environment() -> None:
    """The modules that stood in for the library's are gone after the import."""
    environ = {"PYTHONPATH": ":".join(sys.path)}
    for proxies, known in (({}, ""), ({"HTTPS_PROXY": "http://proxy:1"}, "https://")):
        done = subprocess.run(
            [sys.executable, "-c", CODE],
            env={**environ, **proxies},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert (done.stdout.strip(), done.stderr) == (known, "")
