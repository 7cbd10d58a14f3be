"""Jars and class files that are made without Java: enough to be found, not to be run.

Also locations of plugins that run: Apache's file connectors, and those of `java_plugins`.
"""

import shutil
import subprocess
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from struct import pack

from pyconnect_sandbox.runtime import KafkaRuntime

PUBLIC, INTERFACE, ABSTRACT = 0x0001, 0x0200, 0x0400
CONFIG_PROVIDER = "org.apache.kafka.common.config.provider.ConfigProvider"
SOURCE_CONNECTOR = "org.apache.kafka.connect.source.SourceConnector"
TRANSFORMATION = "org.apache.kafka.connect.transforms.Transformation"


def class_file(
    name: str,
    super_name: str = "java.lang.Object",
    interfaces: Sequence[str] = (),
    *,
    access: int = PUBLIC,
    java: int = 17,
    uses: Sequence[tuple[str, str, str]] = (),
    names: Sequence[str] = (),
    methods: Sequence[tuple[str, str]] = (),
) -> bytes:
    """Return a class with a constant of each size before its names, and no code.

    `uses`: owner, name and descriptor of methods that its code would call; `names`: classes and
    texts among its constants; `methods`: name and descriptor of its own public methods.
    """
    constants = [
        pack(">Bi", 3, 7),
        pack(">Bq", 5, 7),
        pack(">BHH", 18, 1, 1),
        pack(">BBH", 15, 1, 1),
        pack(">BH", 8, 1),
    ]
    places = 7  # 1 to 6 are taken: a long takes two
    indexes = []
    for class_name in (name, super_name, *interfaces):
        text = class_name.replace(".", "/").encode()
        constants += [pack(">BH", 1, len(text)) + text, pack(">BH", 7, places)]
        indexes.append(places + 1)
        places += 2

    def add(constant: bytes) -> int:
        nonlocal places
        constants.append(constant)
        places += 1
        return places - 1

    def text_of(text: str) -> int:
        return add(pack(">BH", 1, len(text)) + text.encode())

    def class_of(owner: str) -> int:
        return add(pack(">BH", 7, text_of(owner.replace(".", "/"))))

    for owner, method, kind in uses:
        pair = add(pack(">BHH", 12, text_of(method), text_of(kind)))
        add(pack(">BHH", 10, class_of(owner), pair))
    for given in names:
        class_of(given)
    members = [(text_of(method), text_of(kind)) for method, kind in methods]
    return b"".join(
        (
            pack(">IHHH", 0xCAFEBABE, 0, java + 44, places),
            *constants,
            pack(">HHHH", access, indexes[0], indexes[1], len(interfaces)),
            *(pack(">H", index) for index in indexes[2:]),
            pack(">HH", 0, len(members)),
            *(pack(">HHHH", PUBLIC, name_text, kind, 0) for name_text, kind in members),
        )
    )


def make_jar(
    path: Path,
    classes: Mapping[str, bytes] | None = None,
    services: Mapping[str, Sequence[str]] | None = None,
) -> Path:
    """Write a jar; `classes` by name with dots, `services` by the name of the type."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as jar:
        for name, content in (classes or {}).items():
            jar.writestr(f"{name.replace('.', '/')}.class", content)
        for type_name, names in (services or {}).items():
            text = "# one to a line\n" + "\n".join(f"{name}  # comment" for name in names)
            jar.writestr(f"META-INF/services/{type_name}", text)
    return path


def make_class(directory: Path, name: str, content: bytes) -> Path:
    """Write a class file to its place in a directory of classes."""
    path = directory / f"{name.replace('.', '/')}.class"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


SOURCES = Path(__file__).parent / "java_plugins"
PACKAGE = "io.pyconnect.tests"
CLASS_VERSION, TOO_NEW = slice(6, 8), (200).to_bytes(2)
CONNECTORS = {"source.SourceConnector": "NumberSource", "sink.SinkConnector": "NoteSink"}


def file_connectors(runtime: KafkaRuntime, plugin_path: Path) -> None:
    """Make a location of Apache's FileStream connectors."""
    location = plugin_path / "file"
    location.mkdir()
    (jar,) = runtime.libs.glob("connect-file-*.jar")
    shutil.copy(jar, location)


def test_connectors(runtime: KafkaRuntime, plugin_path: Path) -> None:
    """Compile the connectors of the tests, and make a location of them."""
    classes = plugin_path.parent / "classes"
    services = classes / "META-INF" / "services"
    services.mkdir(parents=True)
    for kind, name in CONNECTORS.items():
        (services / f"org.apache.kafka.connect.{kind}").write_text(f"{PACKAGE}.{name}\n")
    sources = sorted(map(str, SOURCES.glob("*.java")))
    javac = runtime.java.executable.with_name("javac")
    class_path = f"{runtime.libs}/*"
    quick = "-J-XX:TieredStopAtLevel=1"
    command = [javac, quick, "--release", "17", "-cp", class_path, "-d", classes, *sources]
    subprocess.run(command, check=True)
    too_new = classes / PACKAGE.replace(".", "/") / "NewSink.class"
    code = bytearray(too_new.read_bytes())
    code[CLASS_VERSION] = TOO_NEW
    too_new.write_bytes(code)
    location = plugin_path / "tests"
    location.mkdir()
    shutil.make_archive(str(location / "tests"), "zip", classes)
    (location / "tests.zip").rename(location / "tests.jar")
