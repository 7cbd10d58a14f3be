"""TLS and credentials on the wire, and secrets that must not be printed."""

import base64
import json
import os
import ssl
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from pyconnect_cli.rest.masking import MASK
from tests.cli.conftest import Run
from tests.support.cases import cases
from tests.support.fakes.connect_server import FakeConnect, FakeConnector, serve

pytestmark = pytest.mark.wire
OPS = f"Basic {base64.b64encode(b'ops:s3cret').decode()}"


@pytest.fixture
def authority(tmp_path: Path) -> trustme.CA:
    """Return a certificate authority whose certificate is in `ca.pem`."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    return authority


@pytest.fixture
def tls(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    return context


@pytest.fixture
def secure_url(tls: ssl.SSLContext, connect: FakeConnect) -> Iterator[str]:
    """Serve a worker with a certificate of our authority."""
    with serve(connect, tls) as url:
        yield url


@pytest.fixture
def mutual_url(tls: ssl.SSLContext, authority: trustme.CA, connect: FakeConnect) -> Iterator[str]:
    """Serve a worker that also requires a certificate of the client."""
    authority.configure_trust(tls)
    tls.verify_mode = ssl.CERT_REQUIRED
    with serve(connect, tls) as url:
        yield url


def test_certificates_are_checked(run: Run, secure_url: str, tmp_path: Path) -> None:
    """A certificate that is not trusted is exit 7 with a hint at --ca-file, unless --insecure."""
    outcome = run("connectors", "list", address=secure_url, code=7)
    assert "certificate is not trusted" in outcome.err
    assert "--ca-file" in outcome.err
    outcome = run("connectors", "list", "--ca-file", "/nowhere.pem", address=secure_url, code=2)
    assert "/nowhere.pem" in outcome.err
    assert run("connectors", "list", "--insecure", address=secure_url).code == 0
    outcome = run(
        "connectors", "list", "-o", "name", "--ca-file", str(tmp_path / "ca.pem"),
        address=secure_url,
    )  # fmt: skip
    assert outcome.out.split() == ["broken", "orders"], outcome.err


def test_a_client_certificate_is_presented(
    run: Run, mutual_url: str, authority: trustme.CA, tmp_path: Path
) -> None:
    """A worker that requires a client certificate refuses a client without --cert."""
    ours = authority.issue_cert("ops@example.org")
    ours.private_key_and_cert_chain_pem.write_to_path(tmp_path / "ours.pem")
    trust = ("--ca-file", str(tmp_path / "ca.pem"))
    assert run("connectors", "list", *trust, address=mutual_url).code == 7
    with_ours = run(
        "connectors", "list", *trust, "--cert", str(tmp_path / "ours.pem"), address=mutual_url
    )
    assert with_ours.code == 0, with_ours.err


@cases("source", "file", "command", "variable", "context")
def test_passwords_are_fetched_from_where_they_are(
    run: Run, connect: FakeConnect, url: str, tmp_path: Path, environ: dict[str, str], source: str
) -> None:
    """A password comes from a file's first line, a command's output, a variable or a context."""
    connect.authorization = OPS
    secret = tmp_path / "secret"
    secret.write_text("s3cret\nsecond line\n")
    user = ("--username", "ops")
    match source:
        case "file":
            outcome = run("connectors", "list", *user, "--password-file", str(secret))
        case "command":
            outcome = run("connectors", "list", *user, "--password-command", f"cat '{secret}'")
        case "variable":
            environ["PYCONNECT_PASSWORD"] = "s3cret"
            outcome = run("connectors", "list", *user)
        case _:
            command = f"cat '{secret}'"
            run(
                "context", "set", "p", "--url", url, *user, "--password-command", command, "--use",
                address=None,
            )  # fmt: skip
            outcome = run("connectors", "list", address=None)
    assert outcome.code == 0, outcome.err
    assert "s3cret" not in outcome.err


def test_credentials_are_sent_and_not_repeated(
    run: Run, connect: FakeConnect, tmp_path: Path
) -> None:
    """Wrong credentials are exit 4, and no message repeats a password."""
    connect.authorization = OPS
    secret = tmp_path / "secret"
    secret.write_text("wr0ng\n")
    outcome = run("connectors", "list", "--username", "ops", "--password-file", str(secret), "-v")
    assert outcome.code == 4
    assert "wr0ng" not in outcome.err
    connect.authorization = "Bearer t0ken"
    token = tmp_path / "token"
    token.write_text("t0ken\n")
    assert run("connectors", "list", "--token-file", str(token)).code == 0
    connect.authorization = OPS
    outcome = run("connectors", "list", "--username", "ops", "--password", "s3cret", code=0)
    assert "--password-file" in outcome.err
    assert "s3cret" not in outcome.err


def test_a_failing_password_command_is_reported_without_its_output(run: Run) -> None:
    """The error of a failing password command omits its output, which may be the secret."""
    outcome = run(
        "connectors", "list", "--username", "ops",
        "--password-command", "sh -c 'echo s3cret; exit 3'",
    )  # fmt: skip
    assert outcome.code == 2
    assert "ended with code 3" in outcome.err
    assert "\ns3cret" not in outcome.err


@cases("verb", "connectors list --timeout 1s", "fleet --within 500ms")
def test_a_command_for_a_secret_that_hangs_ends_with_its_children(
    environ: dict[str, str], tmp_path: Path, verb: str
) -> None:
    """A secret's command that does not end is killed with its children after the run's time."""
    alive = tmp_path / "alive"
    os.mkfifo(alive)
    script = tmp_path / "token"
    script.write_text(f"sleep 3600 > '{alive}' & wait")
    file = Path(environ["XDG_CONFIG_HOME"]) / "pyconnect" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text(
        f"[contexts.slow]\nurls = ['http://127.0.0.1:1']\ntoken_command = \"sh '{script}'\"\n"
    )
    context = [] if verb.startswith("fleet") else ["--context", "slow"]
    with os.fdopen(os.open(alive, os.O_RDONLY | os.O_NONBLOCK), "rb") as reading:
        outcome = subprocess.run(
            [sys.executable, "-m", "pyconnect_cli", *verb.split(), *context],
            env={**os.environ, **environ},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        os.set_blocking(reading.fileno(), True)
        assert reading.read() == b""
    said = "no answer within" if verb.startswith("fleet") else "has not ended within 1s"
    assert said in outcome.stdout + outcome.stderr


def test_validation_results_are_masked(run: Run, connect: FakeConnect, tmp_path: Path) -> None:
    """The result of a validation has masked secrets, although a worker returns every value."""
    connect.invalid_keys = ("db.password",)
    file = tmp_path / "c.json"
    file.write_text('{"name": "c", "connector.class": "X", "db.password": "s3cret"}')
    outcome = run("connectors", "validate", "-f", str(file), "-o", "json", code=1)
    assert json.loads(outcome.out)["configs"][0]["value"]["name"] == "db.password"
    assert "s3cret" not in outcome.out


def test_the_edited_file_is_private(
    run: Run, connect: FakeConnect, environ: dict[str, str], tmp_path: Path
) -> None:
    """The file to edit has mode 0600, because it holds secrets, and is removed afterwards."""
    seen = tmp_path / "seen"
    environ["EDITOR"] = f'sh -c \'stat -c %a "$0" > {seen}; echo "$0" >> {seen}\''
    assert run("connectors", "edit", "orders").code == 0
    mode, path = seen.read_text().split()
    assert mode == "600"
    assert not os.path.exists(path)  # noqa: PTH110


def test_no_hint_shows_a_secret_of_the_command_that_was_typed(run: Run, url: str) -> None:
    """A hint that repeats the typed command masks credentials in addresses."""
    address = url.replace("://", "://ops:hunter2@")
    asked = run("connectors", "delete", "orders", "--url", address, address=None, code=9)
    assert f"--url '{address.replace('hunter2', MASK)}' --yes" in asked.err
    assert "hunter2" not in asked.err
    given = ("--url", address.removeprefix("http://"), "--username=ops", "--password=hunter2")
    checked = run("doctor", *given, address=None, code=0)
    assert "(a value)" in checked.out
    assert "hunter2" not in checked.out + checked.err


def test_exported_secrets_are_readable_by_their_owner_only(run: Run, tmp_path: Path) -> None:
    """Exported files with secrets have mode 0600, even if they replace files of another mode."""
    directory = tmp_path / "backup"
    directory.mkdir()
    file = directory / "orders.json"
    file.write_text("old")
    file.chmod(0o644)
    run("connectors", "export", "--all", "--show-secrets", "--dir", str(directory), code=0)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in directory.iterdir()}
    assert modes == {"orders.json": 0o600, "broken.json": 0o600}
    assert json.loads(file.read_text())["config"]["db.password"] == "hunter2"
    before = os.umask(0o022)
    try:
        assert run("connectors", "export", "--all", "--dir", str(tmp_path / "out")).code == 0
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "out" / "orders.json").stat().st_mode) == 0o644


def test_exported_files_never_coincide(run: Run, connect: FakeConnect, tmp_path: Path) -> None:
    """Names with `/`, `_` and `%` have different files; a file for two connectors is an error."""
    names = ["a/b", "a_b", "a%2Fb"]
    connect.connectors = {name: FakeConnector(config={"name": name}) for name in names}
    directory = tmp_path / "out"
    assert run("connectors", "export", "--all", "--dir", str(directory)).code == 0
    found = sorted(json.loads(path.read_text())["name"] for path in directory.iterdir())
    assert found == sorted(names)

    # As on a file system that does not distinguish upper case from lower case.
    connect.connectors = {name: FakeConnector(config={"name": name}) for name in ("low", "LOW")}
    (directory / "LOW.json").symlink_to("low.json")
    (directory / "low.json").write_text("")
    refused = run("connectors", "export", "--all", "--dir", str(directory), code=2)
    assert "would be overwritten" in refused.err
    kept = json.loads((directory / "low.json").read_text())["name"]
    assert f"holds `{kept}`" in refused.err
