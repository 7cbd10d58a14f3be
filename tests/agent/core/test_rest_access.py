"""Roles: the requests that a user may send; the credentials of the REST extension."""

import hashlib
from base64 import b64encode

import pytest

from pyconnect_agent.core.rest_access import (
    ENDPOINTS,
    User,
    UserRole,
    credentials_file,
    is_password,
    jaas_file,
    read_users,
    subject_text,
    token_hash,
)
from pyconnect_agent.rest.app import ADMIN_ROUTES, MAIN_ROUTES
from pyconnect_api.errors import ConfigException
from tests.support.cases import cases

ROUTES = [(route.method, route.template) for route in (*MAIN_ROUTES, *ADMIN_ROUTES)]
# The first role that may send a request, by the words of its method and path.
WORKERS = {("POST", "/connectors/{connector}/tasks"), ("PUT", "/connectors/{connector}/fence")}
EDITOR = {
    ("POST", "/connectors"),
    ("DELETE", "/connectors/{connector}"),
    ("PUT", "/connectors/{connector}/config"),
    ("PATCH", "/connectors/{connector}/config"),
}
ADMIN = {("PUT", "/admin/loggers/{logger}"), ("POST", "/agent/drain"), ("POST", "/agent/phase")}
READ_BY_OPERATORS = {
    ("GET", "/agent/tasks/{connector}/{task}/stacks"),
    ("GET", "/agent/connectors/{connector}/logs"),
}
VALIDATION = ("PUT", "/connector-plugins/{plugin}/config/validate")


def lowest(route: tuple[str, str]) -> int:
    """Return the lowest role: viewers read, operators change states; other requests are above."""
    if route in WORKERS:
        return UserRole.ADMIN + 1
    if route in ADMIN:
        return UserRole.ADMIN
    if route in EDITOR:
        return UserRole.EDITOR
    if route in READ_BY_OPERATORS:
        return UserRole.OPERATOR
    return UserRole.VIEWER if route[0] == "GET" or route == VALIDATION else UserRole.OPERATOR


def test_the_table_has_every_endpoint_and_no_other() -> None:
    """An endpoint that is not in the table is for admins only."""
    assert set(ENDPOINTS) == set(ROUTES)
    assert User(name="a", role=UserRole.EDITOR).refusal("GET", "/new", None) is not None
    assert User(name="a", role=UserRole.ADMIN).refusal("GET", "/new", None) is None


@pytest.mark.parametrize("role", UserRole)
@pytest.mark.parametrize("route", ROUTES, ids=" ".join)
def test_each_role_may_send_what_its_table_says(route: tuple[str, str], role: UserRole) -> None:
    """The refusal has the user, the role, the endpoint and the role that it needs."""
    refusal = User(name="anna", role=role).refusal(
        *route, "c" if "{connector}" in route[1] else None
    )
    assert (refusal is None) == (role >= lowest(route))
    if refusal is not None and route not in WORKERS:
        assert refusal.startswith(f"anna has the role {role.name.lower()}; {' '.join(route)} needs")


@pytest.mark.parametrize("route", ROUTES, ids=" ".join)
def test_patterns_limit_the_connectors(route: tuple[str, str]) -> None:
    """A limited user may not use other connectors and endpoints about the whole worker."""
    admin = User(name="anna", role=UserRole.ADMIN, connectors=("orders-*", "exact"))
    if "{connector}" in route[1]:
        if route not in WORKERS:
            for connector in ("orders-1", "exact"):
                assert admin.refusal(*route, connector) is None
        for connector in ("order", "Orders-1", "exact2"):
            assert admin.refusal(*route, connector) is not None
    else:
        own = route[1] == "/agent/journal"
        whole = not own and (
            route[1].startswith("/agent") or route == ("PUT", "/admin/loggers/{logger}")
        )
        assert (admin.refusal(*route, None) is not None) == whole


def test_users_are_read() -> None:
    """A user has a role; the other keys are optional."""
    text = f"""
[anna]
role = "editor"
connectors = ["orders-*"]
tokens = ["{token_hash("t1")}", "{token_hash("t2")}"]
certificates = ["CN=anna, O=Example\\\\, Inc"]
["bob smith"]
role = "Viewer"
"""
    anna, bob = read_users(text, source="users.toml")
    assert (anna.name, anna.role, anna.connectors) == ("anna", UserRole.EDITOR, ("orders-*",))
    assert token_hash("t2") in anna.tokens
    assert anna.certificates == {r"CN=anna,O=Example\, Inc"}
    assert (bob.name, bob.role, bob.connectors) == ("bob smith", UserRole.VIEWER, ("*",))
    assert "sha256" not in repr(anna)


@cases(
    "text, reason",
    ("[anna", "this is not TOML"),
    ('anna = "editor"', "user anna: write"),
    ("[anna]", "role must be one of viewer, operator, editor, admin"),
    ("[anna]\nrole = 1", "role must be one of"),
    ('[anna]\nrole = "root"', "role must be one of"),
    ('[anna]\nrole = "viewer"\nconnector = ["a"]', "connector is not one of"),
    ('[anna]\nrole = "viewer"\nconnectors = "a"', "connectors must be a list of texts"),
    ('[anna]\nrole = "viewer"\ntokens = ["clear"]', "a token is written sha256:"),
    ('[anna]\nrole = "viewer"\npassword = "clear"', "a password is written scrypt:SALT:HASH"),
    (
        "".join(f'[{name}]\nrole = "viewer"\ncertificates = ["CN=a"]\n' for name in "ab"),
        "two users have one of certificates in common",
    ),
)
def test_wrong_users_are_refused(text: str, reason: str) -> None:
    """The error has the file, the user and the fault, and no secret."""
    with pytest.raises(ConfigException, match=f"^users.toml: .*{reason}") as refused:
        read_users(text, source="users.toml")
    assert "clear" not in str(refused.value)


def test_a_password_is_compared_with_its_hash() -> None:
    """A password matches its scrypt hash; a cut hash matches nothing."""
    salt = b"0123456789abcdef"
    found = hashlib.scrypt(b"p\xc3\xa4ss", salt=salt, n=2**14, r=8, p=1, dklen=32)
    written = f"scrypt:{b64encode(salt).decode()}:{b64encode(found).decode()}"
    assert is_password("päss", written)
    assert not is_password("pass", written)
    assert not is_password("päss", written.rpartition(":")[0] + ":")


def test_a_subject_is_written_as_java_writes_it() -> None:
    """The last part of the subject comes first, and commas in values are escaped."""
    subject = (
        (("countryName", "DE"),),
        (("organizationName", "Example, Inc"),),
        (("commonName", "anna"),),
    )
    assert subject_text(subject) == r"CN=anna,O=Example\, Inc,C=DE"


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
    """The worker's key counts first, then the variables that Java and its start scripts read."""
    assert jaas_file(configured, variables) == path


def test_a_missing_jaas_file_is_named_with_the_way_out() -> None:
    """A worker without the file does not start; the error says how to set it."""
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
    """Comments, quotes and other entries of Java's login files are understood."""
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
    """The error has the file and the reason, and no password."""
    with pytest.raises(ConfigException, match=f"^jaas.conf: .*{reason}"):
        credentials_file(text, source="jaas.conf")
