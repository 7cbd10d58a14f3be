"""The source of tokens in Java's properties, and the times of fetches."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyconnect_clients.errors import ClientPropertyError
from pyconnect_clients.security import parse_sasl
from pyconnect_clients.token_login import (
    EndpointTokens,
    FileTokens,
    Lifetime,
    MskTokens,
    RefreshSettings,
    TokenLogin,
    UnsecuredTokens,
    next_fetch_ms,
    retry_ms,
)
from tests.support.cases import cases

ENDPOINT = "sasl.oauthbearer.token.endpoint.url"
CREDENTIALS = "sasl.oauthbearer.client.credentials.client"
JAAS = 'o.OAuthBearerLoginModule required clientId="i" clientSecret="SECRET" scope="r"'


def login(properties: Mapping[str, str], mechanism: str = "OAUTHBEARER") -> TokenLogin:
    sasl = parse_sasl({"sasl.mechanism": mechanism, **properties})
    assert sasl.mechanism == "OAUTHBEARER"
    assert isinstance(sasl.login, TokenLogin)
    assert "SECRET" not in repr(sasl)
    return sasl.login


def test_credentials_and_extensions_are_of_properties_or_the_login_entry() -> None:
    """Newer properties take precedence; brokers' `ssl.` properties are not for this connection."""
    java = {ENDPOINT: "https://idp/token", "sasl.jaas.config": f"{JAAS};"}
    expected = EndpointTokens(
        url="https://idp/token", client_id="i", client_secret="SECRET", scope="r"
    )
    assert login(java).tokens == expected
    newer = {f"{CREDENTIALS}.id": "n", f"{CREDENTIALS}.secret": "m", "sasl.oauthbearer.scope": "t"}
    wanted = EndpointTokens(url="https://idp/token", client_id="n", client_secret="m", scope="t")
    assert login({**java, **newer}).tokens == wanted
    found = login(
        {
            ENDPOINT: "https://idp/token",
            "sasl.jaas.config": f'{JAAS} extension_a="b" ssl.truststore.location="/ca.pem";',
            "ssl.truststore.location": "/other.pem",
        }
    )
    assert found.extensions == (("a", "b"),)
    assert isinstance(found.tokens, EndpointTokens)
    assert found.tokens.tls_options == (("ssl.truststore.location", "/ca.pem"),)


def test_times_are_kafkas() -> None:
    """Times of refreshes are seconds, and other times are milliseconds."""
    java = {ENDPOINT: "file:///t"}
    assert login(java).refresh == RefreshSettings()
    changed = {
        "sasl.login.refresh.window.factor": "0.6",
        "sasl.login.refresh.window.jitter": "0.1",
        "sasl.login.refresh.min.period.seconds": "2",
        "sasl.login.refresh.buffer.seconds": "3",
        "sasl.login.retry.backoff.ms": "4",
        "sasl.login.retry.backoff.max.ms": "5",
    }
    assert login({**java, **changed}).refresh == RefreshSettings(
        window_factor=0.6,
        window_jitter=0.1,
        min_period_ms=2_000,
        buffer_ms=3_000,
        retry_backoff_ms=4,
        retry_backoff_max_ms=5,
    )


def test_tokens_of_files_and_of_the_client_itself() -> None:
    """A file has a URL, and a client's own token has claims of three kinds."""
    assert login({ENDPOINT: "file:///t"}).tokens == FileTokens(url="file:///t")
    claims = (
        'unsecuredLoginStringClaim_sub="a" unsecuredLoginNumberClaim_n="1.5"'
        ' unsecuredLoginListClaim_scope="|x|y" unsecuredLoginLifetimeSeconds="60"'
    )
    assert login({"sasl.jaas.config": f"o.M required {claims};"}).tokens == UnsecuredTokens(
        claims=(("sub", "a"), ("n", 1.5), ("scope", ("x", "y"))), lifetime_s=60
    )


@cases("mechanism", "AWS_MSK_IAM", "OAUTHBEARER")
def test_the_configuration_of_aws_becomes_a_signer(mechanism: str) -> None:
    """The region is part of the brokers' names."""
    found = login(
        {
            "sasl.jaas.config": (
                'software.amazon.msk.auth.iam.IAMLoginModule required awsProfileName="p"'
                ' awsRoleArn="arn" awsRoleSessionName="s";'
            ),
            "sasl.login.callback.handler.class": (
                "software.amazon.msk.auth.iam.IAMClientCallbackHandler"
            ),
        },
        mechanism,
    )
    expected = {"profile": "p", "role_arn": "arn", "role_session": "s"}
    assert found.tokens == MskTokens(region=None, **expected)
    near = found.near("b-1.c.abc.c2.kafka.eu-west-1.amazonaws.com:9098,b-2:9098")
    assert near.tokens == MskTokens(region="eu-west-1", **expected)
    serverless = found.near("boot-x.c1.kafka-serverless.us-east-1.amazonaws.com:9098")
    assert serverless.tokens == MskTokens(region="us-east-1", **expected)
    assert found.near("localhost:9092") == found


REFUSED = [
    ({}, f"{ENDPOINT}: it is missing"),
    ({ENDPOINT: "ftp://x"}, f"{ENDPOINT}: only http, https and file"),
    ({ENDPOINT: "https://u:SECRET@idp/token"}, f"{ENDPOINT}: it contains credentials"),
    ({ENDPOINT: "https://idp"}, f"{CREDENTIALS}.id: it is missing"),
    ({ENDPOINT: "https://idp", f"{CREDENTIALS}.id": "i"}, f"{CREDENTIALS}.secret: it is missing"),
    ({ENDPOINT: "https://idp", "sasl.oauthbearer.jwt.retriever.class": "o.JwtBearerJwtRetriever"},
     "sasl.oauthbearer.jwt.retriever.class: JwtBearerJwtRetriever"),
    ({ENDPOINT: "file:///t", "sasl.login.refresh.window.factor": "2"},
     "sasl.login.refresh.window.factor: 2 is not a number from 0.5 to 1"),
    ({ENDPOINT: "file:///t", "sasl.login.retry.backoff.ms": "x"},
     "sasl.login.retry.backoff.ms: x is not"),
]  # fmt: skip


@pytest.mark.parametrize(("properties", "text"), REFUSED)
def test_unusable_settings_are_refused_with_their_key(
    properties: Mapping[str, str], text: str
) -> None:
    """Errors leave out values that may be secret."""
    with pytest.raises(ClientPropertyError) as refused:
        login(properties)
    assert str(refused.value).startswith(text)
    assert "SECRET" not in str(refused.value)


MINUTE = 60_000
KAFKAS = RefreshSettings()
TIMES = st.integers(0, 2**45)


@cases(
    "lifetime_ms, chance, due_ms",
    (60 * MINUTE, 0.0, 48 * MINUTE),
    (60 * MINUTE, 1.0, 51 * MINUTE),
    # Five minutes before the end, the buffer.
    (10 * MINUTE, 1.0, 5 * MINUTE),
    # One minute from now, the least.
    (6 * MINUTE, 0.0, 1 * MINUTE),
    # A lifetime that is too short for both: the share alone counts.
    (100_000, 0.0, 80_000),
    (100_000, 1.0, 85_000),
)
def test_a_token_is_replaced_as_kafka_does(lifetime_ms: int, chance: float, due_ms: int) -> None:
    """The time is a share of the lifetime, moved by the shortest period and the buffer."""
    token = Lifetime(start_ms=0, expiry_ms=lifetime_ms)
    assert next_fetch_ms(KAFKAS, token, 0, chance) == due_ms


def test_tokens_are_fetched_with_pauses() -> None:
    """Pauses grow and vary after failures; a file that is not replaced has pauses too."""
    old = Lifetime(start_ms=0, expiry_ms=100_000)
    assert next_fetch_ms(KAFKAS, old, 99_000, 0.5) == 99_100
    assert next_fetch_ms(KAFKAS, old, 100_000, 0.5) == 110_000
    waits = [retry_ms(KAFKAS, failures, 0, 0.5, retriable=True) for failures in (1, 2, 3, 8, 500)]
    assert waits == [100, 200, 400, 10_000, 10_000]
    assert [retry_ms(KAFKAS, 1, 0, chance, retriable=True) for chance in (0, 1)] == [80, 120]
    assert retry_ms(KAFKAS, 1, 5, 0.5, retriable=False) == 10_005


@given(TIMES, TIMES, TIMES, st.floats(0, 1))
def test_a_fetch_is_never_due_in_the_past(start: int, expiry: int, now: int, chance: float) -> None:
    """The thread pauses between fetches for any clock of the server."""
    token = Lifetime(start_ms=start, expiry_ms=expiry)
    assert next_fetch_ms(KAFKAS, token, now, chance) > now


@given(st.integers(1, 200 * MINUTE), st.floats(0, 1))
def test_a_fresh_token_is_replaced_before_it_expires(lifetime_ms: int, chance: float) -> None:
    """A token is replaced before it expires if its lifetime is a second or more."""
    lifetime_ms += 1_000
    token = Lifetime(start_ms=0, expiry_ms=lifetime_ms)
    assert next_fetch_ms(KAFKAS, token, 0, chance) < lifetime_ms
