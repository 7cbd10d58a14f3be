"""An S3 server with one access key: LocalBucket, which by itself checks no keys.

    python s3_program.py DIRECTORY PORT ACCESS_KEY [overwrites]

`overwrites`: it ignores conditions of writes, as older servers do.
"""

import re
import sys
from http import HTTPStatus
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import localbucket

KEY_OF_REQUEST = re.compile(r"Credential=([^/]+)/")


class Handler(localbucket.S3Handler):  # type: ignore[misc]  # the package has no types
    access_key: str
    overwrites: bool

    def _dispatch(self, action: Any) -> None:
        found = KEY_OF_REQUEST.search(self.headers.get("Authorization", ""))
        if found is None or found[1] != self.access_key:
            self._read_body()
            text = "The AWS Access Key Id you provided does not exist in our records."
            self._send_error(localbucket.S3Error(HTTPStatus.FORBIDDEN, "InvalidAccessKeyId", text))
            return
        if self.overwrites:
            del self.headers["If-None-Match"]
        super()._dispatch(action)


def main() -> None:
    directory, port, access_key, *flags = sys.argv[1:]
    Handler.data_root = Path(directory)
    Handler.access_key = access_key
    Handler.overwrites = "overwrites" in flags
    with ThreadingHTTPServer(("127.0.0.1", int(port)), Handler) as server:
        server.serve_forever()


if __name__ == "__main__":
    main()
