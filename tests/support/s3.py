"""An S3 service on this machine, for tests: moto's server, one in each process of tests."""

from __future__ import annotations

import logging
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from uuid import uuid4

import pytest


@dataclass(frozen=True)
class Service:
    """Where the service is, and a bucket in it."""

    endpoint: str
    bucket: str

    @property
    def settings(self) -> dict[str, str]:
        """The variables of the environment that lead to it."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": "test-key",
            "AWS_SECRET_ACCESS_KEY": "test-secret",
            "AWS_REGION": "us-east-1",
            "AWS_ALLOW_HTTP": "true",
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def new_folder(self) -> str:
        """The URI of a folder that nothing is in."""
        return f"s3://{self.bucket}/{uuid4().hex[:8]}/state"


@contextmanager
def serving() -> Iterator[Service]:
    """A service with an empty bucket."""
    pytest.importorskip("obstore", reason="states in buckets need `evermat[s3]`")
    moto = pytest.importorskip(
        "moto.moto_server.threaded_moto_server", reason="`moto[server]` is the S3 service of these tests"
    )
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = moto.ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    service = Service(f"http://{host}:{port}", f"bucket-{uuid4().hex[:8]}")
    try:
        request = urllib.request.Request(f"{service.endpoint}/{service.bucket}", method="PUT")
        urllib.request.urlopen(request).close()
        yield service
    finally:
        server.stop()
