# Sourced by the other scripts: finds Python and Java, makes the virtual environment.
# After `use_environment dev|runtime`, `$python` is the environment's interpreter.

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
venv="${PYCONNECT_VENV:-$root/.venv}"

say() { printf '%s\n' "$*" >&2; }

fail() {
  say "error: $1"
  shift
  for line in "$@"; do say "hint: $line"; done
  exit 2
}

find_python() {
  local candidate
  for candidate in "${PYTHON:-}" python3.13 python3.12 python3.11 python3; do
    [ -n "$candidate" ] || continue
    if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      command -v "$candidate"
      return
    fi
  done
  fail "Python 3.11 or newer was not found" \
    "install it (Debian/Ubuntu: apt install python3.11 python3.11-venv; macOS: brew install python@3.12), or set PYTHON to its path"
}

require_java() {
  local version
  version="$(java -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1)" || true
  if [ -z "$version" ] || [ "$version" -lt 17 ]; then
    fail "Java 17 or newer was not found${version:+ (java is version $version)}; the Kafka broker runs on it" \
      "Debian/Ubuntu: sudo apt-get install openjdk-17-jre-headless" \
      "Fedora/RHEL:   sudo dnf install java-17-openjdk-headless" \
      "Alpine:        sudo apk add openjdk17-jre-headless" \
      "macOS:         brew install openjdk@17"
  fi
}

# use_environment REQUIREMENTS...: a virtual environment with exactly these hash-pinned files and
# this checkout, made anew only when one of them changed.
use_environment() {
  local base stamp wanted name
  base="$(find_python)"
  python="$venv/bin/python"
  stamp="$venv/.pyconnect-$(IFS=-; echo "$*")"
  wanted="$("$base" -VV; cd "$root"; cat pyproject.toml; for name in build "$@"; do cat "requirements/$name.txt"; done)"
  wanted="$root $(printf '%s' "$wanted" | cksum)"
  if [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ] && [ -x "$python" ]; then
    return
  fi
  say "setting up the virtual environment (once)"
  [ -x "$python" ] || "$base" -m venv "$venv"
  local pip=("$python" -m pip install --quiet --disable-pip-version-check)
  "${pip[@]}" --require-hashes -r "$root/requirements/build.txt"
  for name in "$@"; do
    local options=()
    [ "$name" != sample ] || options=(--no-deps)
    # Source distributions are built with the pinned tools of build.txt, not with downloaded ones.
    "${pip[@]}" --no-build-isolation --require-hashes ${options[@]+"${options[@]}"} -r "$root/requirements/$name.txt"
  done
  "${pip[@]}" --no-build-isolation --no-deps -e "$root"
  printf '%s' "$wanted" > "$stamp"
}

# The Kafka jars come through Maven; without Maven, through the Ivy that pyspark carries.
jar_requirements() {
  if [ -n "${KAFKA_HOME:-}" ] || command -v mvn >/dev/null 2>&1; then return; fi
  echo reconcile
}
