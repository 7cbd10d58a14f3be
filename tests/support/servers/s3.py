"""An S3 server for tests, in a process of its own."""

import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx

from pyconnect_sandbox.server import Server, free_port
from tests.support.names import unique_name

PROGRAM = Path(__file__).with_name("s3_program.py")
ACCESS_KEY = "lake-key"
SECRET_KEY = "lake-secret"


class S3Server(Server):
    """A server that ends with its holder; buckets are directories below `files`."""

    name = "s3"

    def __init__(self, *, directory: Path, hold_file: Path, overwrites: bool) -> None:
        super().__init__(
            directory=directory, start_timeout_s=150, stop_timeout_s=5.0, hold_file=hold_file
        )
        self._overwrites = overwrites
        self.port = free_port()
        self.files = directory / "files"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def new_bucket(self) -> str:
        bucket = unique_name("lake")
        (self.files / bucket).mkdir()
        return bucket

    def settings(self, bucket: str) -> dict[str, str]:
        return {
            "lake.url": f"s3://{bucket}/base",
            "store.url": self.url,
            "s3.region": "us-east-1",
            "aws.access.key.id": ACCESS_KEY,
            "aws.secret.access.key": SECRET_KEY,
        }

    def _prepare(self) -> Sequence[str]:
        self.files.mkdir(exist_ok=True)
        flags = ["overwrites"] if self._overwrites else []
        return [sys.executable, str(PROGRAM), str(self.files), str(self.port), ACCESS_KEY, *flags]

    def _answers(self, timeout_s: float) -> bool:
        try:
            return httpx.get(self.url, timeout=timeout_s).status_code == httpx.codes.FORBIDDEN
        except httpx.HTTPError:
            return False


@contextmanager
def running_s3(*, overwrites: bool = False) -> Iterator[S3Server]:
    """Yield a server; remove all its files afterwards."""
    with tempfile.TemporaryDirectory(prefix="pyconnect-s3-") as directory:
        root = Path(directory)
        server = S3Server(directory=root / "server", hold_file=root / "hold", overwrites=overwrites)
        server.start()
        try:
            yield server
        finally:
            server.stop()
