"""Secrets are masked by key, references stay, passwords in addresses never show."""

import shlex

from pyconnect_cli.rest.masking import (
    MASK,
    mask_command,
    mask_document,
    mask_text,
    mask_url,
    mask_value,
)
from tests.support.cases import cases


@cases(
    "key, value, shown",
    ("db.password", "x", MASK),
    ("basic.auth.user.info", "u:pw", MASK),
    ("db.password", "${file:/run/s:db}", "${file:/run/s:db}"),
    ("db.password", "${env:A}${env:B}", "${env:A}${env:B}"),
    ("db.password", "x${env:A}", MASK),
    ("db.password", "", ""),
    ("db.password", None, None),
    ("url", "jdbc:x://u:pw@h/db?password=pw&a=b", f"jdbc:x://u:{MASK}@h/db?password={MASK}&a=b"),
    ("url", "jdbc:x://h/db?password=${env:P}", "jdbc:x://h/db?password=${env:P}"),
    ("url", "http://host:8083/a@b", "http://host:8083/a@b"),
    ("url", "http://ops:p@ss@host:8083", f"http://ops:{MASK}@host:8083"),
)
def test_values(key: str, value: str | None, shown: str | None) -> None:
    """A secret key hides all values but references; in other values only passwords are hidden."""
    assert mask_value(key, value) == shown


def test_printed_maps_and_validation_results_keep_their_shape() -> None:
    """The name of a value is its key, or the member `name` in validation results."""
    text = mask_text("config {db.password=s3cret, tasks.max=1} contains no connector type")
    assert text == f"config {{db.password={MASK}, tasks.max=1}} contains no connector type"
    masked = mask_document({"configs": [{"value": {"name": "db.password", "value": "s3cret"}}]})
    assert masked == {"configs": [{"value": {"name": "db.password", "value": MASK}}]}


@cases(
    "url, shown",
    ("ops:hunter2@host:8083", f"ops:{MASK}@host:8083"),
    ("https://ops:hunter2@host", f"https://ops:{MASK}@host"),
    ("host:8083", "host:8083"),
)
def test_an_address_is_masked_with_and_without_its_scheme(url: str, shown: str) -> None:
    """`--url` accepts addresses with and without a scheme."""
    assert mask_url(url) == shown


@cases(
    "words",
    ("--url", "http://ops:hunter2@h:1"),
    ("--url=http://ops:hunter2@h:1",),
    ("--url", "ops:hunter2@h:1"),
    ("--url=ops:hunter2@h:1",),
    ("--password", "hunter2"),
    ("--password=hunter2",),
    ("--token", "hunter2"),
    ("--set", "db.password=hunter2"),
    ("--set=db.password=hunter2",),
    ("-s", "db.password=hunter2"),
    ("-sdb.password=hunter2",),
    ("-s", "connection.url=jdbc:x://u:hunter2@h/db"),
    ("-s", "sasl.jaas.config=Login required username=a password='hunter2';"),
    ("-l", "db.password=hunter2"),
    ("--worker-property", "ssl.key.password=hunter2"),
    ("--principal", "http://ops:hunter2@h:1:producer=User:p"),
    ("--header", "Authorization: Basic hunter2"),
    ("--header=Authorization: Bearer hunter2",),
    ("-s", "header=Authorization: Bearer hunter2"),
    ("drain", "http://ops:hunter2@h:1"),
)
def test_no_secret_is_in_a_command_that_is_suggested(words: tuple[str, ...]) -> None:
    """Options, configuration keys, headers and addresses are masked; other words stay as typed."""
    shown = mask_command(["pyconnect", *words, "--yes"])
    assert "hunter2" not in shown
    assert MASK in shown
    assert shlex.split(shown)[0] == "pyconnect"
    assert shlex.split(shown)[-1] == "--yes"


def test_a_suggested_command_without_secrets_can_be_run_as_it_is() -> None:
    """References, file names and keys are not secrets."""
    words = [
        "pyconnect", "--password-file", "/run/s", "--token-command=pass t", "--url", "http://h:1",
        "connectors", "create", "two words", "-s", "db.password=${file:/run/s:db}", "-s", "a=b=c",
        "--principal", "producer=User:CN=p,O=x",
    ]  # fmt: skip
    assert shlex.split(mask_command(words)) == words
