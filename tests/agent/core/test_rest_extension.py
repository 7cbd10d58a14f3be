"""The JAAS file of Apache's REST extension."""

import pytest

from pyconnect_agent.core.rest_access import credentials_file, jaas_file
from pyconnect_api.errors import ConfigException
from tests.support.cases import cases

MODULE = "org.apache.kafka.connect.rest.basic.auth.extension.PropertyFileLoginModule"
OPTION = "-Djava.security.auth.login.config="


@cases(
    "configured, variables, path",
    ("/own.conf", {"KAFKA_OPTS": f"{OPTION}/other.conf"}, "/own.conf"),
    (None, {"KAFKA_OPTS": f"-Xmx1g {OPTION}/a.conf -Dx=y"}, "/a.conf"),
    (None, {"KAFKA_OPTS": f'"{OPTION}/with blank.conf"'}, "/with blank.conf"),
    (None, {"KAFKA_OPTS": f"{OPTION}=/only.conf"}, "/only.conf"),
    (None, {"JAVA_TOOL_OPTIONS": f"{OPTION}file:/a%20b.conf"}, "/a b.conf"),
    (None, {"KAFKA_OPTS": f"it's {OPTION}/a.conf"}, "/a.conf"),
)
def test_the_jaas_file_is_that_of_a_java_worker(
    configured: str | None, variables: dict[str, str], path: str
) -> None:
    """The worker's key comes first, then the variables that Java and its start scripts read."""
    assert jaas_file(configured, variables) == path


def test_a_missing_jaas_file_is_named_with_the_way_out() -> None:
    """The worker does not start."""
    with pytest.raises(ConfigException, match=r"needs a JAAS file: set java\.security"):
        jaas_file(None, {"KAFKA_OPTS": "-Xmx1g"})


@cases(
    "text",
    f'KafkaConnect {{ {MODULE} required file="/c.properties"; }};',
    f"KafkaConnect{{{MODULE} optional\nfile='/c.properties' ;}}\n;",
    (
        f'/* KafkaConnect {{ a; }}; */ A {{ b required c="}};"; }};\n// x\n'
        f'"KafkaConnect" {{ {MODULE} requisite debug=true file="/c.properties"; }};'
    ),
)
def test_the_entry_names_the_file_of_credentials(text: str) -> None:
    """Comments, quotes and other entries are those of Java's login files."""
    assert credentials_file(text, source="jaas.conf") == "/c.properties"


@cases(
    "text, reason",
    ("", "there is no entry KafkaConnect"),
    (f'KafkaConnect2 {{ {MODULE} required file="/c"; }};', "there is no entry KafkaConnect"),
    (f'KafkaConnect {{ {MODULE} required file="/c"; ', "there is no entry KafkaConnect"),
    ("KafkaConnect { com.example.Ldap required; };", "Ldap is a Java class"),
    (f"KafkaConnect {{ {MODULE} required; }};", "names no file"),
    (f"KafkaConnect {{ {MODULE} sometimes file=a; }};", "cannot be read"),
    (f"KafkaConnect {{ {MODULE} required file=a; b.C required; }};", "cannot be read"),
)
def test_a_wrong_jaas_file_is_refused(text: str, reason: str) -> None:
    """The error names the file and the reason, and no password."""
    with pytest.raises(ConfigException, match=f"^jaas.conf: .*{reason}"):
        credentials_file(text, source="jaas.conf")
