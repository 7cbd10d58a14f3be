"""A server of S3 for the files of lakes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.servers.s3 import S3Server, running_s3


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    """A server of S3 of this test process."""
    with running_s3() as server:
        yield server
