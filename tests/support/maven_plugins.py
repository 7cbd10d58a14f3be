"""Real Java plugins from a Maven repository, in the user's cache, each a location of its own."""

from __future__ import annotations

import os
import shutil
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from platformdirs import user_cache_path

from pyconnect_sandbox.coordinates import KAFKA_VERSION, Coordinate
from pyconnect_sandbox.jar_cache import JarCache, sha256_of
from pyconnect_sandbox.progress import silent
from pyconnect_sandbox.resolvers import find_resolver
from pyconnect_sandbox.runtime import KafkaRuntime


@dataclass(frozen=True, slots=True)
class JavaPlugin:
    """`jars`: SHA-256 by name of what is fetched and kept; an archive is unpacked."""

    name: str
    coordinate: Coordinate
    jars: Mapping[str, str]


DEBEZIUM = JavaPlugin(
    "debezium-postgres",
    Coordinate(
        "io.debezium",
        "debezium-connector-postgres",
        "3.2.3.Final",
        "plugin",
        "tar.gz",
        alone=True,
    ),
    {
        "debezium-connector-postgres-3.2.3.Final-plugin.tar.gz": (
            "f910970600310be124a6454897c2f0e6f0e94fa3050883fc8cb2c908c927aba6"
        )
    },
)
MIRROR = JavaPlugin(
    "connect-mirror",
    Coordinate("org.apache.kafka", "connect-mirror", KAFKA_VERSION),
    {
        "connect-mirror-4.3.1.jar": (
            "0d091c7ba172827dc42ed09fdf4390876a90ab627fd8d2bb002016f9785617e1"
        ),
        "connect-mirror-client-4.3.1.jar": (
            "c11ebb023021dccb8f18c6b57019b9dbe7c74e0b9495196a895a5d40b9faf1a8"
        ),
    },
)
MONGO = JavaPlugin(
    "mongo",
    Coordinate("org.mongodb.kafka", "mongo-kafka-connect", "1.13.0"),
    {
        "mongo-kafka-connect-1.13.0.jar": (
            "1e342b4d803c2f4cf73e10e94d22e505784bb59abb3c3394594541c158d8c3fe"
        ),
        "bson-4.7.2.jar": "8b38221a9351a0a4086f08d5012dac86515a9450325ca5b82565b190e7da33c7",
        "bson-record-codec-4.7.2.jar": (
            "85155ebeedcfc8f8850904932c9793f0c86ee697f6a4e1836b1f4d1d2797538f"
        ),
        "mongodb-driver-core-4.7.2.jar": (
            "aff7529f68e0da68358db0ea58707ba2cd92cdbaaa6c60cd55583ad60160f626"
        ),
        "mongodb-driver-sync-4.7.2.jar": (
            "12a3426f71b84ad52282bf08adb8ea04b3ba0fefc0d9feddf14e62071cab437d"
        ),
        "avro-1.9.2.jar": "9d8f65504604b5fcdffb96793a9a32ca7b10bc0a469425d1d1fe4aa490c31c02",
    },
)

RELOAD4J = JavaPlugin(
    "reload4j",
    Coordinate("ch.qos.reload4j", "reload4j", "1.2.26"),
    {"reload4j-1.2.26.jar": "a7e86ae144541d04d24d1b7123d7425415477d50f387bb868e5c955aeaedd96f"},
)
"""No plugin, but the library of Log4j 1 that old ones bring."""

SNOWFLAKE = JavaPlugin(
    "snowflake",
    # All dependencies are in the jar, such as Confluent's AvroConverter.
    Coordinate("com.snowflake", "snowflake-kafka-connector", "2.5.0", alone=True),
    {
        "snowflake-kafka-connector-2.5.0.jar": (
            "97d38b009b695749f1bab6256d881d8e6e30aa995fa6c572ff5c072783bfc5f5"
        )
    },
)
JDBC_SINK = JavaPlugin(
    "debezium-jdbc",
    # A release whose jar is in the repository, with its dependencies; archives of it are not.
    Coordinate("io.debezium", "debezium-connector-jdbc", "3.3.1.Final"),
    {
        "angus-activation-2.0.2.jar": (
            "6dd3bcffc22bce83b07376a0e2e094e4964a3195d4118fb43e380ef35436cc1e"
        ),
        "antlr4-runtime-4.13.2.jar": (
            "dd3e8a13a2d669bf84fb8d834de35ce4875f27157698d206241ec8488aadcaf7"
        ),
        "byte-buddy-1.17.6.jar": "d26382a839cb26d5c62a0b0f04715bcef55a531f96ac6ce40de452a1c0539e70",
        "c3p0-0.9.5.5.jar": "96cec5ddfe2f08b8407125d8228eb0392121e1bf2239ca621bb19228b67f741a",
        "checker-qual-3.49.3.jar": (
            "367edbf2fe9f606c1fdb5a8ba6e1c9c27625993e1ff954e3868de70bcc6416b7"
        ),
        "classmate-1.7.0.jar": "cb868f231c5cceb89d795ea00e6e1b7a93b8f4ac1ce1d8be76dde322dff4a046",
        "debezium-api-3.3.1.Final.jar": (
            "ca6315aa136dd98166430681406458000ba8e5ee363049ea753ecdf498c4f2b0"
        ),
        "debezium-common-3.3.1.Final.jar": (
            "28d8a2b5c46bc3db621a6eee2c2020cf9360fbeeb1ef452e08bbd2964d94464a"
        ),
        "debezium-connector-jdbc-3.3.1.Final.jar": (
            "685befaa8ea623e1f5c4d921c75ab1f5030d0eb49293f21b731841ff77376ed8"
        ),
        "debezium-core-3.3.1.Final.jar": (
            "e7bcf7ae6d540b9089d2cbc5f346264290f4f0d58f547de63167e8af1dba306f"
        ),
        "debezium-openlineage-api-3.3.1.Final.jar": (
            "9f8580d062fca9c79a1d23e81b080eeb4895ed611bc7f12505651d7c92d72aab"
        ),
        "debezium-sink-3.3.1.Final.jar": (
            "03deee28afc7dd8d5f62c42d70e8b793a417fb37a9ae66a37fdd498f3e84cecb"
        ),
        "hibernate-c3p0-7.1.0.Final.jar": (
            "9b43cd8c0527334368943666ffb8d7f1cc5fb8d94b551bcf0beaa08463b8f96c"
        ),
        "hibernate-core-7.1.0.Final.jar": (
            "3d290966bbc074597c26cd2a975827fe37d5fe2951f3394a0cafe9ccf21eee3a"
        ),
        "hibernate-models-1.0.1.jar": (
            "bdb42c4979001742ebc098f3b206dd1057dc93be55c50a31c3f027d3eed06412"
        ),
        "istack-commons-runtime-4.1.2.jar": (
            "7fd6792361f4dd00f8c56af4a20cecc0066deea4a8f3dec38348af23fc2296ee"
        ),
        "jakarta.activation-api-2.1.3.jar": (
            "01b176d718a169263e78290691fc479977186bcc6b333487325084d6586f4627"
        ),
        "jakarta.inject-api-2.0.1.jar": (
            "f7dc98062fccf14126abb751b64fab12c312566e8cbdc8483598bffcea93af7c"
        ),
        "jakarta.persistence-api-3.2.0.jar": (
            "be8a26b0e75c84c1b7600f759256fbc68d60333d89ec0ce3f784fc3ffa09aa8c"
        ),
        "jakarta.transaction-api-2.0.1.jar": (
            "50c0a7c760c13ae6c042acf182b28f0047413db95b4636fb8879bcffab5ba875"
        ),
        "jakarta.xml.bind-api-4.0.2.jar": (
            "0d6bcfe47763e85047acf7c398336dc84ff85ebcad0a7cb6f3b9d3e981245406"
        ),
        "jaxb-core-4.0.5.jar": "ad3fd9bf00de3eda9859f70b6cfb011e2fe9904804e16a2665092888ece0fdca",
        "jaxb-runtime-4.0.5.jar": (
            "485d8940e76373a7f300815ea5504bf5b726c234425ad30971019d133124cca4"
        ),
        "jboss-logging-3.6.1.Final.jar": (
            "5e08a4b092dc85b337f0910a740571d8720cfa565fabd880a8caf94a657ca416"
        ),
        "mchange-commons-java-0.2.19.jar": (
            "03761838ba2a7c9cce56ba84781633f107c8befb4e3607b336ee3010f915165d"
        ),
        "postgresql-42.7.7.jar": "157963d60ae66d607e09466e8c0cdf8087e9cb20d0159899ffca96bca2528460",
        "txw2-4.0.5.jar": "917355bc451481f30d043b24d123110517966af34383901773882810dca480e5",
    },
)
"""Debezium's sink with PostgreSQL's driver, without those of others and what Kafka has itself."""


def location_of(plugin: JavaPlugin, runtime: KafkaRuntime) -> Path:
    """Return the directory of a plugin's jars, fetched on first use."""
    root = user_cache_path("pyconnect") / "java-plugins" / plugin.name
    cache = JarCache(plugin.coordinate.version, {}, root)
    if not cache.is_complete():
        resolver = find_resolver(os.environ, runtime.java, wanted=plugin.name)

        def resolve(work_directory: Path, libs: Path) -> None:
            fetched = work_directory / "fetched"
            fetched.mkdir()
            resolver.resolve(
                work_directory, fetched, coordinates=(plugin.coordinate,), progress=silent
            )
            for name, checksum in plugin.jars.items():
                assert sha256_of(fetched / name) == checksum, name
                _keep(fetched / name, libs)

        cache.fill(resolver.name.lower(), resolve, silent)
    return cache.libs


def file_connectors(runtime: KafkaRuntime, directory: Path) -> Path:
    """Return a copy of Apache's jar of file connectors, as a location."""
    (jar,) = runtime.libs.glob("connect-file-*.jar")
    return Path(shutil.copy(jar, directory))


def _keep(file: Path, libs: Path) -> None:
    """Take a jar, or the jars of an archive."""
    if file.suffix == ".jar":
        shutil.copy(file, libs)
        return
    with tarfile.open(file) as archive:
        for member in archive.getmembers():
            if member.name.endswith(".jar"):
                member.name = Path(member.name).name
                archive.extract(member, libs, filter="data")
