"""The source of a client's tokens as a value, and the time of the next fetch. Pure.

Corresponds to ``OAuthBearerLoginCallbackHandler`` and the retrievers of Kafka 4.3.1 (KIP-768,
KIP-1139), ``OAuthBearerUnsecuredLoginCallbackHandler``, ``ExpiringCredentialRefreshingLogin`` and
its ``Retry``, and the login module of AWS for MSK. Signed assertions (``JwtBearerJwtRetriever``)
are refused. `chance` is a random number from 0 to 1.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from pyconnect_clients.errors import ClientPropertyError
from pyconnect_clients.jaas import JAAS_CONFIG, JaasEntry

_MOST_DOUBLINGS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshSettings:
    """The properties `sasl.login.refresh.*` and `sasl.login.retry.*`; defaults are Kafka's."""

    window_factor: float = 0.8
    window_jitter: float = 0.05
    min_period_ms: int = 60_000
    buffer_ms: int = 300_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Lifetime:
    """The lifetime of a token, in milliseconds since the epoch."""

    start_ms: int
    expiry_ms: int


def next_fetch_ms(settings: RefreshSettings, token: Lifetime, now_ms: int, chance: float) -> int:
    """Return when to replace a token that was fetched now.

    The moment is a share of the lifetime. `min_period_ms` and `buffer_ms` move it, unless the rest
    of the lifetime is shorter than both together. An expired token counts as a failed fetch, after
    which the longest backoff passes.
    """
    if token.expiry_ms <= now_ms:
        return now_ms + settings.retry_backoff_max_ms
    start_ms = min(token.start_ms, now_ms)
    share = settings.window_factor + settings.window_jitter * chance
    wanted = start_ms + int((token.expiry_ms - start_ms) * share)
    if token.expiry_ms - now_ms >= settings.min_period_ms + settings.buffer_ms:
        earliest = now_ms + settings.min_period_ms
        latest = token.expiry_ms - settings.buffer_ms
        return max(min(wanted, latest), earliest)
    # A token from a file, or from a clock that is ahead, may be past this moment already.
    return max(wanted, now_ms + settings.retry_backoff_ms)


def retry_ms(
    settings: RefreshSettings, failures: int, now_ms: int, chance: float, *, retriable: bool
) -> int:
    """Return when to fetch again after `failures` in a row, the last one included.

    The wait doubles, and varies by a fifth. After a refusal the wait is the longest: the same
    credentials rarely become right, and each attempt may count towards locking them out.
    """
    longest = max(settings.retry_backoff_max_ms, settings.retry_backoff_ms)
    if not retriable:
        return now_ms + longest
    wait = min(settings.retry_backoff_ms * 2 ** min(failures - 1, _MOST_DOUBLINGS), longest)
    return now_ms + max(1, int(wait * (0.8 + 0.4 * chance)))


ENDPOINT = "sasl.oauthbearer.token.endpoint.url"
HANDLER = "sasl.login.callback.handler.class"
MSK_MECHANISM = "AWS_MSK_IAM"
FILE_SCHEME = "file:"

_CREDENTIALS = "sasl.oauthbearer.client.credentials."
_SCOPE = "sasl.oauthbearer.scope"
_URL_ENCODE = "sasl.oauthbearer.header.urlencode"
_SUBJECT = "sasl.oauthbearer.sub.claim.name"
_RETRIEVER = "sasl.oauthbearer.jwt.retriever.class"
_LOGIN = "sasl.login."
_NUMBERS = {
    f"{_LOGIN}refresh.window.factor": ("window_factor", 0.5, 1.0),
    f"{_LOGIN}refresh.window.jitter": ("window_jitter", 0.0, 0.25),
    f"{_LOGIN}refresh.min.period.seconds": ("min_period_ms", 0, 900),
    f"{_LOGIN}refresh.buffer.seconds": ("buffer_ms", 0, 3600),
    f"{_LOGIN}retry.backoff.ms": ("retry_backoff_ms", 1, 2**53),
    f"{_LOGIN}retry.backoff.max.ms": ("retry_backoff_max_ms", 1, 2**53),
}
"""Attribute of RefreshSettings, and the range that Kafka accepts."""
_CONNECT, _READ = f"{_LOGIN}connect.timeout.ms", f"{_LOGIN}read.timeout.ms"
_TIMEOUT_MS = 10_000
"""The default here; Java waits without limit."""
_RETRIEVERS = ("DefaultJwtRetriever", "ClientCredentialsJwtRetriever", "FileJwtRetriever")

TOKEN_KEYS = frozenset(
    {
        "sasl.mechanism",
        JAAS_CONFIG,
        HANDLER,
        ENDPOINT,
        _SCOPE,
        f"{_CREDENTIALS}client.id",
        f"{_CREDENTIALS}client.secret",
        _URL_ENCODE,
        _SUBJECT,
        _RETRIEVER,
        *_NUMBERS,
        _CONNECT,
        _READ,
    }
)
"""The properties from which a login by token is parsed."""

_UNSECURED = re.compile(r"unsecuredLogin(String|Number|List)Claim_(.+)")
_EXTENSION = "extension_"
_MSK_HOST = re.compile(r"\.kafka(?:-serverless)?\.([a-z0-9-]+)\.amazonaws\.com")
_MSK_MODULE = "IAMLoginModule"


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointTokens:
    """Tokens of an authorization server, in exchange for credentials.

    `tls_options`: the `ssl.` options of the login entry; Kafka uses no other for this connection.
    """

    url: str
    client_id: str
    client_secret: str = field(repr=False)
    scope: str | None = None
    url_encoded: bool = False
    tls_options: tuple[tuple[str, str], ...] = field(repr=False, default=())
    connect_timeout_ms: int = _TIMEOUT_MS
    read_timeout_ms: int = _TIMEOUT_MS


@dataclass(frozen=True, slots=True, kw_only=True)
class FileTokens:
    """Tokens that another program writes to a file."""

    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsecuredTokens:
    """Tokens that the client writes itself, for a broker that does not check them."""

    claims: tuple[tuple[str, str | float | tuple[str, ...]], ...]
    lifetime_s: int = 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class MskTokens:
    """Tokens that AWS's signer makes from IAM credentials; `region` None: of the environment."""

    region: str | None = None
    profile: str | None = None
    role_arn: str | None = None
    role_session: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenLogin:
    """A login by token; equal logins share their tokens.

    `properties`: the parsed properties, for clients whose settings are text.
    """

    tokens: EndpointTokens | FileTokens | UnsecuredTokens | MskTokens
    extensions: tuple[tuple[str, str], ...] = ()
    subject_claim: str = "sub"
    refresh: RefreshSettings = field(default_factory=RefreshSettings)
    properties: tuple[tuple[str, str], ...] = field(repr=False, default=())

    @property
    def source_key(self) -> str:
        """The property that decides about the source of tokens."""
        served = isinstance(self.tokens, EndpointTokens | FileTokens)
        return ENDPOINT if served else "sasl.mechanism"

    def near(self, bootstrap: str) -> TokenLogin:
        """Return the login with MSK's region from the brokers' names, unless it is known."""
        found = _MSK_HOST.search(bootstrap.lower())
        if not isinstance(self.tokens, MskTokens) or self.tokens.region or found is None:
            return self
        return replace(self, tokens=replace(self.tokens, region=found[1]))


def parse_token_login(
    mechanism: str, properties: Mapping[str, str], entry: JaasEntry
) -> TokenLogin:
    """Parse trimmed properties; raise ClientPropertyError, which never quotes a secret."""
    options = entry.options
    tokens: EndpointTokens | FileTokens | UnsecuredTokens | MskTokens
    if mechanism == MSK_MECHANISM or entry.simple_name == _MSK_MODULE:
        tokens = MskTokens(
            profile=options.get("awsProfileName"),
            role_arn=options.get("awsRoleArn"),
            role_session=options.get("awsRoleSessionName"),
        )
    else:
        tokens = _oauth(properties, options)
    refresh: dict[str, float] = {}
    for key, (attribute, least, most) in _NUMBERS.items():
        if key in properties:
            number = _number(properties, key, 0, least, most)
            whole = attribute.endswith("_ms")
            factor = 1000 if key.endswith(".seconds") else 1
            refresh[attribute] = int(number * factor) if whole else number
    return TokenLogin(
        tokens=tokens,
        extensions=tuple(
            (name.removeprefix(_EXTENSION), value)
            for name, value in options.items()
            if name.startswith(_EXTENSION)
        ),
        subject_claim=properties.get(_SUBJECT, "sub"),
        refresh=RefreshSettings(**refresh),  # type: ignore[arg-type] # whole where it belongs
        properties=tuple(
            (name, value) for name, value in sorted(properties.items()) if name in TOKEN_KEYS
        ),
    )


def _oauth(
    properties: Mapping[str, str], options: Mapping[str, str]
) -> EndpointTokens | FileTokens | UnsecuredTokens:
    retriever = properties.get(_RETRIEVER, _RETRIEVERS[0]).rpartition(".")[2]
    if retriever not in _RETRIEVERS:
        raise ClientPropertyError(
            _RETRIEVER, f"{retriever} is not supported", f"use one of {', '.join(_RETRIEVERS)}"
        )
    url = properties.get(ENDPOINT)
    if url is None:
        return _unsecured(options)
    scheme = url.partition(":")[0].lower()
    if scheme == "file":
        return FileTokens(url=url)
    if scheme not in ("https", "http") or "://" not in url:
        raise ClientPropertyError(
            ENDPOINT, "only http, https and file are supported", "name the server or the file"
        )
    if "@" in url.split("://", 1)[1].partition("/")[0]:
        raise ClientPropertyError(
            ENDPOINT, "it contains credentials", "give clientId and clientSecret in their places"
        )
    client_id = properties.get(f"{_CREDENTIALS}client.id") or options.get("clientId")
    client_secret = properties.get(f"{_CREDENTIALS}client.secret") or options.get("clientSecret")
    for name, value in (("id", client_id), ("secret", client_secret)):
        if not value:
            raise ClientPropertyError(
                f"{_CREDENTIALS}client.{name}",
                "it is missing, and the authorization server needs it",
                f"set it, or client{name.title()} among the options of {JAAS_CONFIG}",
            )
    assert client_id is not None
    assert client_secret is not None
    return EndpointTokens(
        url=url,
        client_id=client_id,
        client_secret=client_secret,
        scope=properties.get(_SCOPE) or options.get("scope"),
        url_encoded=properties.get(_URL_ENCODE, "false").lower() == "true",
        tls_options=tuple((n, text) for n, text in options.items() if n.startswith("ssl.")),
        connect_timeout_ms=int(_number(properties, _CONNECT, _TIMEOUT_MS, 1, 600_000)),
        read_timeout_ms=int(_number(properties, _READ, _TIMEOUT_MS, 1, 600_000)),
    )


def _unsecured(options: Mapping[str, str]) -> UnsecuredTokens:
    readers: Mapping[str, Callable[[str], str | float | tuple[str, ...]]] = {
        "String": str,
        "Number": float,
        # The first character is the separator.
        "List": lambda text: tuple(text[1:].split(text[0])) if text else (),
    }
    claims = []
    for option, text in options.items():
        found = _UNSECURED.fullmatch(option)
        if found is not None:
            try:
                claims.append((found[2], readers[found[1]](text)))
            except ValueError as exc:
                raise ClientPropertyError(JAAS_CONFIG, f"{option} is not a number") from exc
    if "sub" not in dict(claims):
        raise ClientPropertyError(
            ENDPOINT,
            "it is missing, and OAUTHBEARER needs a source of tokens",
            "name the authorization server's https URL for tokens",
        )
    lifetime = options.get("unsecuredLoginLifetimeSeconds", "3600")
    if not lifetime.isdecimal() or not int(lifetime):
        raise ClientPropertyError(
            JAAS_CONFIG, "unsecuredLoginLifetimeSeconds is not a number above 0"
        )
    return UnsecuredTokens(claims=tuple(claims), lifetime_s=int(lifetime))


def _number(
    properties: Mapping[str, str], key: str, default: float, least: float, most: float
) -> float:
    text = properties.get(key)
    if text is None:
        return default
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if not least <= number <= most:
        raise ClientPropertyError(key, f"{text} is not a number from {least:g} to {most:g}")
    return number
