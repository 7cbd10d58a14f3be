"""scripts/environment.sh with interpreters and Javas that are shell scripts."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOLS = (
    "awk",
    "bash",
    "cat",
    "chmod",
    "cksum",
    "cp",
    "dirname",
    "grep",
    "head",
    "mkdir",
    "rm",
    "sed",
    "tail",
    "tee",
    "touch",
)

pytestmark = pytest.mark.wire

# A fake interpreter: it answers the script's questions and makes environments with its copy.
INTERPRETER = """\
#!/bin/sh
echo "{name} $*" >> {log}
case "$*" in
  *version_info\\<*|*"version_info <"*) exit 0 ;;
  *base_prefix*) echo "{name}" ;;
  *_base_executable*) echo "{path}" ;;
  *ensurepip*) exit {ensurepip} ;;
  *"import pip"*) test -e "$(dirname "$0")/pip" ;;
  *version_info*) echo python3.99-venv ;;
  -V) echo "Python {name}" ;;
  "-m venv --clear "*)
    rm -rf "$4"; mkdir -p "$4/bin"
    touch "$4/pyvenv.cfg" "$4/bin/pip"
    cp "{path}" "$4/bin/python" ;;
  "-m pip "*) echo "  Downloading a.whl (1 MB)"; test ! -e {directory}/no-network ;;
esac
"""


class Checkout:
    """A checkout with nothing but the scripts, and a PATH without Python and Java."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.venv = directory / ".venv"
        self.bin = directory / "bin"
        self.log = directory / "calls"
        for path in ("scripts", "requirements", "bin"):
            (directory / path).mkdir()
        for script in ("environment.sh", "test"):
            shutil.copy(ROOT / "scripts" / script, directory / "scripts" / script)
        for name in ("build", "dev"):
            (directory / "requirements" / f"{name}.txt").touch()
        (directory / "pyproject.toml").touch()
        for tool in TOOLS:
            found = shutil.which(tool)
            assert found is not None, tool
            (self.bin / tool).symlink_to(found)

    def interpreter(self, name: str, *, ensurepip: bool = True) -> Path:
        path = self.directory / f"{name}-python"
        text = INTERPRETER.format(
            name=name,
            path=path,
            log=self.log,
            directory=self.directory,
            ensurepip=int(not ensurepip),
        )
        return executable(path, text)

    def on_path(self, command: str, target: Path) -> None:
        (self.bin / command).symlink_to(target)

    def run(self, script: str, **variables: str) -> subprocess.CompletedProcess[str]:
        self.log.write_text("")
        return subprocess.run(
            [str(self.bin / "bash"), "-c", script],
            cwd=self.directory,
            env={"PATH": str(self.bin), **variables},
            capture_output=True,
            text=True,
            timeout=400,
            check=False,
        )

    def use_environment(self, **variables: str) -> subprocess.CompletedProcess[str]:
        return self.run("source scripts/environment.sh; use_environment dev", **variables)

    def made_with(self) -> str:
        """Return the name of the interpreter in the environment."""
        done = subprocess.run(
            [str(self.venv / "bin" / "python"), "-V"],
            env={"PATH": str(self.bin)}, capture_output=True, text=True, check=True,
        )  # fmt: skip
        return done.stdout.split()[-1]

    def calls(self) -> str:
        return self.log.read_text()


def executable(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def java(path: Path, version: str) -> Path:
    return executable(path, f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


def test_an_environment_is_made_once(checkout: Checkout) -> None:
    """The second call installs nothing."""
    checkout.on_path("python3.12", checkout.interpreter("twelve"))
    assert checkout.use_environment().returncode == 0
    assert " -m pip install" in checkout.calls()
    assert checkout.use_environment().returncode == 0
    assert " -m " not in checkout.calls()


def test_downloads_are_announced(checkout: Checkout) -> None:
    """The script prints files, target directory and size before it downloads."""
    checkout.on_path("python3.12", checkout.interpreter("twelve"))
    said = checkout.use_environment().stderr
    before, downloaded, _ = said.partition("  Downloading a.whl (1 MB)")
    assert downloaded
    assert "requirements/build.txt requirements/dev.txt" in before
    assert str(checkout.venv) in before
    assert re.search(r"about \d\d MB to download", before)


def test_another_python_makes_the_environment_again(checkout: Checkout) -> None:
    """PYTHON replaces the environment's interpreter; without it the environment keeps its own."""
    first, second = checkout.interpreter("first"), checkout.interpreter("second")
    checkout.on_path("python3.13", first)
    assert checkout.use_environment().returncode == 0
    assert checkout.made_with() == "first"
    assert checkout.use_environment(PYTHON=str(second)).returncode == 0
    assert checkout.made_with() == "second"
    assert checkout.use_environment().returncode == 0
    assert checkout.made_with() == "second"


@pytest.mark.parametrize("old", [False, True])
def test_a_python_that_cannot_be_used_is_an_error(checkout: Checkout, old: bool) -> None:
    """The script ends with 2 and uses no other interpreter."""
    checkout.on_path("python3.12", checkout.interpreter("twelve"))
    named = checkout.directory / "named"
    if old:
        executable(named, "#!/bin/sh\nexit 1\n")
    done = checkout.use_environment(PYTHON=str(named))
    assert done.returncode == 2
    assert f"PYTHON names {named}, which is not a Python 3.11 or newer" in done.stderr
    assert not checkout.venv.exists()


def test_an_interrupted_installation_begins_again(checkout: Checkout) -> None:
    """The next call makes a new environment, because pip may have left the old one incomplete."""
    checkout.on_path("python3.12", checkout.interpreter("twelve"))
    unplugged = checkout.directory / "no-network"
    unplugged.touch()
    failed = checkout.use_environment()
    assert failed.returncode == 2
    assert "pip could not install" in failed.stderr
    unplugged.unlink()
    assert checkout.use_environment().returncode == 0
    assert " -m venv --clear" in checkout.calls()
    assert " -m pip install" in checkout.calls()


@pytest.mark.parametrize("missing", ["bin/pip", "bin/python"])
def test_a_half_made_environment_is_made_again(checkout: Checkout, missing: str) -> None:
    """An environment without pip, or whose interpreter is gone, is made again."""
    checkout.on_path("python3.12", checkout.interpreter("twelve"))
    assert checkout.use_environment().returncode == 0
    (checkout.venv / missing).unlink()
    assert checkout.use_environment().returncode == 0
    assert " -m venv --clear" in checkout.calls()
    assert (checkout.venv / missing).exists()


def test_without_ensurepip_the_package_is_named_and_nothing_is_left(checkout: Checkout) -> None:
    """The message names Debian's package for `-m venv`, and no environment is left."""
    checkout.on_path("python3", checkout.interpreter("debian", ensurepip=False))
    done = checkout.use_environment()
    assert done.returncode == 2
    assert "sudo apt-get install python3-venv (of this version: python3.99-venv)" in done.stderr
    assert not checkout.venv.exists()


def test_a_directory_that_is_no_environment_is_not_cleared(checkout: Checkout) -> None:
    """A directory in PYCONNECT_VENV that is not an environment keeps its files."""
    checkout.on_path("python3.12", checkout.interpreter("twelve"))
    precious = checkout.directory / "home" / "letter"
    precious.parent.mkdir()
    precious.write_text("dear")
    done = checkout.use_environment(PYCONNECT_VENV=str(precious.parent))
    assert done.returncode == 2
    assert "is not a virtual environment" in done.stderr
    assert precious.read_text() == "dear"


REQUIRE_JAVA = 'source scripts/environment.sh; require_java; echo "${JAVA_HOME-unset}"'


def test_the_java_of_java_home_is_enough(checkout: Checkout) -> None:
    """A Java in JAVA_HOME is enough when PATH has none."""
    home = checkout.directory / "jdk"
    java(home / "bin" / "java", "21.0.1")
    assert checkout.run(REQUIRE_JAVA, JAVA_HOME=str(home)).stdout.strip() == str(home)


def test_an_old_java_home_gives_way_to_the_path(checkout: Checkout) -> None:
    """The script unsets an old JAVA_HOME, so Spark takes the Java of PATH as the sandbox does."""
    home = checkout.directory / "jdk"
    java(home / "bin" / "java", "1.8.0_402")
    java(checkout.bin / "java", "17.0.15")
    assert checkout.run(REQUIRE_JAVA, JAVA_HOME=str(home)).stdout.strip() == "unset"


def test_a_java_that_is_too_old_is_named(checkout: Checkout) -> None:
    """The message has the version of the Java on PATH."""
    java(checkout.bin / "java", "11.0.2")
    done = checkout.run(REQUIRE_JAVA)
    assert done.returncode == 2
    assert "Java 17 or newer was not found (java is version 11)" in done.stderr


@pytest.mark.parametrize("tier", ["pure", "simulation"])
def test_a_tier_without_servers_needs_neither_java_nor_jars(checkout: Checkout, tier: str) -> None:
    """The pure and simulation tiers run without Java and fetch no jars."""
    checkout.on_path("python3.12", checkout.interpreter("twelve"))
    done = checkout.run(f"bash scripts/test {tier}")
    assert done.returncode == 0, done.stderr
    assert " -m pytest " in checkout.calls()
    assert "jars" not in checkout.calls()


def test_a_tier_with_servers_fetches_the_jars_once_java_is_there(checkout: Checkout) -> None:
    """Without Java the script ends before it installs anything."""
    checkout.on_path("python3.12", checkout.interpreter("twelve"))
    executable(checkout.bin / "mvn", "#!/bin/sh\n")
    without = checkout.run("bash scripts/test kafka")
    assert without.returncode == 2
    assert checkout.calls() == ""
    java(checkout.bin / "java", "17.0.15")
    executable(checkout.bin / "id", "#!/bin/sh\necho 1000\n")
    for name in ("mariadbd", "postgres", "tmux", "promtool", "zsh", "fish"):
        executable(checkout.bin / name, "#!/bin/sh\n")
    one_missing = checkout.run("bash scripts/test kafka")
    assert one_missing.returncode == 2
    assert "programs that are not installed: groff" in one_missing.stderr
    executable(checkout.bin / "groff", "#!/bin/sh\n")
    done = checkout.run("bash scripts/test kafka")
    assert done.returncode == 0, done.stderr
    assert "Kafka's jars: 54 MB" in done.stderr
    assert " -m pyconnect_sandbox.jars" in checkout.calls()


def test_a_tier_is_given_the_files_with_its_tests(checkout: Checkout) -> None:
    """pytest gets only the files with tests of the tier, because importing all files takes long."""
    checkout.on_path("python3.12", checkout.interpreter("twelve"))
    tests = checkout.directory / "tests" / "deep"
    tests.mkdir(parents=True)
    for name, text in (("one", "@pytest.mark.simulation"), ("two", "@pytest.mark.wire")):
        (tests / f"test_{name}.py").write_text(text)
    checkout.run("bash scripts/test simulation")
    assert "-n 2 tests/deep/test_one.py" in checkout.calls()
    assert "test_two" not in checkout.calls()
    checkout.run("bash scripts/test simulation -- tests/deep/test_two.py::test_it")
    assert "test_one" not in checkout.calls()
    checkout.run("bash scripts/test pure")
    assert "test_one" not in checkout.calls()
