"""The configuration keys of Kafka's Java clients, versions 4.3.1 and 4.4.0.

Users configure this worker with these keys, although other client libraries are used. The override
policies and the validation of `producer.override.*` and the like use them.
`core/clients/librdkafka.py` translates them for librdkafka.

One line of the table: key, type, importance, the clients that know it (Producer, Consumer, Admin),
default as in `define_table`.
"""

from collections.abc import Mapping
from enum import Enum

from pyconnect_agent.core.plugin_catalog import RELEASE_4_4
from pyconnect_api.configdef import (
    ConfigDef,
    ConfigKey,
    ConfigType,
    Importance,
    convert_to_string,
    default_in_table,
)


class ClientKind(Enum):
    """The kind of a Java client; the value is its letter in the table."""

    PRODUCER = "P"
    CONSUMER = "C"
    ADMIN = "A"


_TABLE = """
acks  STRING  LOW  P  all
allow.auto.create.topics  BOOLEAN  MEDIUM  C  true
auto.commit.interval.ms  INT  LOW  C  5000
auto.offset.reset  STRING  MEDIUM  C  latest
batch.size  INT  MEDIUM  P  16384
bootstrap.controllers  LIST  HIGH  A  ""
bootstrap.servers  LIST  HIGH  A  ""
bootstrap.servers  LIST  HIGH  PC  !
buffer.memory  LONG  HIGH  P  33554432
check.crcs  BOOLEAN  LOW  C  true
client.dns.lookup  STRING  MEDIUM  PCA  use_all_dns_ips
client.id  STRING  LOW  C  ""
client.id  STRING  MEDIUM  PA  ""
client.rack  STRING  LOW  C  ""
compression.gzip.level  INT  MEDIUM  P  -1
compression.lz4.level  INT  MEDIUM  P  9
compression.type  STRING  HIGH  P  none
compression.zstd.level  INT  MEDIUM  P  3
config.providers  LIST  LOW  PCA  ""
connections.max.idle.ms  LONG  MEDIUM  A  300000
connections.max.idle.ms  LONG  MEDIUM  PC  540000
default.api.timeout.ms  INT  MEDIUM  CA  60000
delivery.timeout.ms  INT  MEDIUM  P  120000
enable.auto.commit  BOOLEAN  MEDIUM  C  true
enable.idempotence  BOOLEAN  LOW  P  true
enable.metrics.push  BOOLEAN  LOW  A  false
enable.metrics.push  BOOLEAN  LOW  PC  true
exclude.internal.topics  BOOLEAN  MEDIUM  C  true
fetch.max.bytes  INT  MEDIUM  C  52428800
fetch.max.wait.ms  INT  LOW  C  500
fetch.min.bytes  INT  HIGH  C  1
group.id  STRING  HIGH  C  ~
group.instance.id  STRING  MEDIUM  C  ~
group.protocol  STRING  HIGH  C  classic
group.remote.assignor  STRING  MEDIUM  C  ~
heartbeat.interval.ms  INT  HIGH  C  3000
interceptor.classes  LIST  LOW  PC  ""
isolation.level  STRING  MEDIUM  C  read_uncommitted
key.deserializer  CLASS  HIGH  C  !
key.serializer  CLASS  HIGH  P  !
linger.ms  LONG  MEDIUM  P  5
max.block.ms  LONG  MEDIUM  P  60000
max.in.flight.requests.per.connection  INT  LOW  P  5
max.partition.fetch.bytes  INT  HIGH  C  1048576
max.poll.interval.ms  INT  MEDIUM  C  300000
max.poll.records  INT  MEDIUM  C  500
max.request.size  INT  MEDIUM  P  1048576
metadata.max.age.ms  LONG  LOW  PCA  300000
metadata.max.idle.ms  LONG  LOW  P  300000
metadata.recovery.rebootstrap.trigger.ms  LONG  LOW  PCA  300000
metadata.recovery.strategy  STRING  LOW  PCA  rebootstrap
metric.reporters  LIST  LOW  PCA  org.apache.kafka.common.metrics.JmxReporter
metrics.num.samples  INT  LOW  PCA  2
metrics.recording.level  STRING  LOW  PCA  INFO
metrics.sample.window.ms  LONG  LOW  PCA  30000
partition.assignment.strategy  LIST  MEDIUM  C  org.apache.kafka.clients.consumer.RangeAssignor,org.apache.kafka.clients.consumer.CooperativeStickyAssignor
partitioner.adaptive.partitioning.enable  BOOLEAN  LOW  P  true
partitioner.availability.timeout.ms  LONG  LOW  P  0
partitioner.class  CLASS  MEDIUM  P  ~
partitioner.ignore.keys  BOOLEAN  MEDIUM  P  false
receive.buffer.bytes  INT  MEDIUM  CA  65536
receive.buffer.bytes  INT  MEDIUM  P  32768
reconnect.backoff.max.ms  LONG  LOW  PCA  1000
reconnect.backoff.ms  LONG  LOW  PCA  50
request.timeout.ms  INT  MEDIUM  PCA  30000
retries  INT  HIGH  P  2147483647
retries  INT  LOW  A  2147483647
retry.backoff.max.ms  LONG  LOW  PCA  1000
retry.backoff.ms  LONG  LOW  PCA  100
sasl.client.callback.handler.class  CLASS  MEDIUM  PCA  ~
sasl.jaas.config  PASSWORD  MEDIUM  PCA  ~
sasl.kerberos.kinit.cmd  STRING  LOW  PCA  /usr/bin/kinit
sasl.kerberos.min.time.before.relogin  LONG  LOW  PCA  60000
sasl.kerberos.service.name  STRING  MEDIUM  PCA  ~
sasl.kerberos.ticket.renew.jitter  DOUBLE  LOW  PCA  0.05
sasl.kerberos.ticket.renew.window.factor  DOUBLE  LOW  PCA  0.8
sasl.login.callback.handler.class  CLASS  MEDIUM  PCA  ~
sasl.login.class  CLASS  MEDIUM  PCA  ~
sasl.login.connect.timeout.ms  INT  LOW  PCA  ~
sasl.login.read.timeout.ms  INT  LOW  PCA  ~
sasl.login.refresh.buffer.seconds  SHORT  LOW  PCA  300
sasl.login.refresh.min.period.seconds  SHORT  LOW  PCA  60
sasl.login.refresh.window.factor  DOUBLE  LOW  PCA  0.8
sasl.login.refresh.window.jitter  DOUBLE  LOW  PCA  0.05
sasl.login.retry.backoff.max.ms  LONG  LOW  PCA  10000
sasl.login.retry.backoff.ms  LONG  LOW  PCA  100
sasl.mechanism  STRING  MEDIUM  PCA  GSSAPI
sasl.oauthbearer.assertion.algorithm  STRING  MEDIUM  PCA  RS256
sasl.oauthbearer.assertion.claim.aud  STRING  MEDIUM  PCA  ~
sasl.oauthbearer.assertion.claim.exp.seconds  INT  LOW  PCA  300
sasl.oauthbearer.assertion.claim.iss  STRING  MEDIUM  PCA  ~
sasl.oauthbearer.assertion.claim.jti.include  BOOLEAN  MEDIUM  PCA  false
sasl.oauthbearer.assertion.claim.nbf.seconds  INT  LOW  PCA  60
sasl.oauthbearer.assertion.claim.sub  STRING  MEDIUM  PCA  ~
sasl.oauthbearer.assertion.file  STRING  MEDIUM  PCA  ~
sasl.oauthbearer.assertion.private.key.file  STRING  MEDIUM  PCA  ~
sasl.oauthbearer.assertion.private.key.passphrase  PASSWORD  MEDIUM  PCA  ~
sasl.oauthbearer.assertion.template.file  STRING  MEDIUM  PCA  ~
sasl.oauthbearer.client.credentials.client.id  STRING  MEDIUM  PCA  ~
sasl.oauthbearer.client.credentials.client.secret  PASSWORD  MEDIUM  PCA  ~
sasl.oauthbearer.clock.skew.seconds  INT  LOW  PCA  30
sasl.oauthbearer.expected.audience  LIST  HIGH  PCA  ""
sasl.oauthbearer.expected.issuer  STRING  HIGH  PCA  ~
sasl.oauthbearer.header.urlencode  BOOLEAN  LOW  PCA  false
sasl.oauthbearer.jwks.endpoint.refresh.ms  LONG  LOW  PCA  3600000
sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms  LONG  LOW  PCA  10000
sasl.oauthbearer.jwks.endpoint.retry.backoff.ms  LONG  LOW  PCA  100
sasl.oauthbearer.jwks.endpoint.url  STRING  MEDIUM  PCA  ~
sasl.oauthbearer.jwt.retriever.class  CLASS  MEDIUM  PCA  org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever
sasl.oauthbearer.jwt.validator.class  CLASS  MEDIUM  PCA  org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator
sasl.oauthbearer.scope  STRING  MEDIUM  PCA  ~
sasl.oauthbearer.scope.claim.name  STRING  LOW  PCA  scope
sasl.oauthbearer.sub.claim.name  STRING  LOW  PCA  sub
sasl.oauthbearer.token.endpoint.url  STRING  MEDIUM  PCA  ~
security.protocol  STRING  MEDIUM  PCA  PLAINTEXT
security.providers  STRING  LOW  PCA  ~
send.buffer.bytes  INT  MEDIUM  PCA  131072
session.timeout.ms  INT  HIGH  C  45000
share.acknowledgement.mode  STRING  MEDIUM  C  implicit
share.acquire.mode  STRING  MEDIUM  C  BATCH_OPTIMIZED
socket.connection.setup.timeout.max.ms  LONG  MEDIUM  PCA  30000
socket.connection.setup.timeout.ms  LONG  MEDIUM  PCA  10000
ssl.cipher.suites  LIST  LOW  PCA  ""
ssl.enabled.protocols  LIST  MEDIUM  PCA  TLSv1.2,TLSv1.3
ssl.endpoint.identification.algorithm  STRING  LOW  PCA  https
ssl.engine.factory.class  CLASS  LOW  PCA  ~
ssl.key.password  PASSWORD  HIGH  PCA  ~
ssl.keymanager.algorithm  STRING  LOW  PCA  SunX509
ssl.keystore.certificate.chain  PASSWORD  HIGH  PCA  ~
ssl.keystore.key  PASSWORD  HIGH  PCA  ~
ssl.keystore.location  STRING  HIGH  PCA  ~
ssl.keystore.password  PASSWORD  HIGH  PCA  ~
ssl.keystore.type  STRING  MEDIUM  PCA  JKS
ssl.protocol  STRING  MEDIUM  PCA  TLSv1.3
ssl.provider  STRING  MEDIUM  PCA  ~
ssl.secure.random.implementation  STRING  LOW  PCA  ~
ssl.trustmanager.algorithm  STRING  LOW  PCA  PKIX
ssl.truststore.certificates  PASSWORD  HIGH  PCA  ~
ssl.truststore.location  STRING  HIGH  PCA  ~
ssl.truststore.password  PASSWORD  HIGH  PCA  ~
ssl.truststore.type  STRING  MEDIUM  PCA  JKS
transaction.timeout.ms  INT  LOW  P  60000
transaction.two.phase.commit.enable  BOOLEAN  LOW  P  false
transactional.id  STRING  LOW  P  ~
value.deserializer  CLASS  HIGH  C  !
value.serializer  CLASS  HIGH  P  !
"""  # noqa: E501  one key, one line

_TABLE_OF_4_4 = """
bootstrap.resolve.timeout.ms  LONG  HIGH  PCA  0
client.rack  STRING  LOW  P  ""
metadata.cluster.check.enable  BOOLEAN  LOW  PCA  true
partitioner.rack.aware  BOOLEAN  LOW  P  false
sasl.oauthbearer.allow.unverified.audience  BOOLEAN  MEDIUM  PCA  false
sasl.oauthbearer.allow.unverified.issuer  BOOLEAN  MEDIUM  PCA  false
"""


def _definition(kind: ClientKind, table: str) -> ConfigDef:
    definition = ConfigDef()
    for line in filter(None, table.splitlines()):
        name, type_name, importance, kinds, default = line.split()
        if kind.value in kinds:
            definition.define_key(
                ConfigKey(
                    name=name,
                    type=ConfigType[type_name],
                    importance=Importance[importance],
                    default=default_in_table(default),
                )
            )
    return definition


CLIENT_CONFIG_DEFS = {kind: _definition(kind, _TABLE + _TABLE_OF_4_4) for kind in ClientKind}
"""The keys of each kind of client in all releases; without documentation."""
_OF_4_3 = {kind: _definition(kind, _TABLE) for kind in ClientKind}


def client_keys(kind: ClientKind, release: str) -> Mapping[str, ConfigKey]:
    """Return the keys that one kind of client knows in a release of Kafka."""
    return (CLIENT_CONFIG_DEFS if release == RELEASE_4_4 else _OF_4_3)[kind].keys


def is_default(name: str, text: str) -> bool:
    """Return whether one of the clients treats ``text`` as an unset key."""
    keys = (definition.keys.get(name) for definition in CLIENT_CONFIG_DEFS.values())
    return any(
        key is not None
        and key.has_default
        and (convert_to_string(key.default, key.type) or "") == text
        for key in keys
    )
