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
    Coordinate("io.debezium", "debezium-connector-postgres", "3.2.3.Final", "plugin", "tar.gz"),
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
