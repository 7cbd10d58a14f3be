"""Storage to write to and to read from."""

from collections.abc import Iterator

import pytest

from tests.support.servers.s3 import S3Server, running_s3


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    """The S3 server of this test process."""
    with running_s3() as server:
        yield server
