# Sourced by the other scripts: finds Python and Java, makes the virtual environment.
# After `use_environment dev|runtime`, `$python` is the environment's interpreter.

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
venv="${PYCONNECT_VENV:-$root/.venv}"
python="$venv/bin/python"

say() { printf '%s\n' "$*" >&2; }

fail() {
  say "error: $1"
  shift
  for line in "$@"; do say "hint: $line"; done
  exit 2
}

is_new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

# The installation that an interpreter belongs to: the same for a virtual environment and its base.
installation_of() {
  "$1" -c 'import os, sys; print(os.path.realpath(sys.base_prefix), sys.version)' 2>/dev/null
}

# PYTHON, or else the interpreter that the environment has already, or else the newest that is known.
find_python() {
  local candidate
  if [ -n "${PYTHON:-}" ]; then
    if is_new_enough "$PYTHON"; then command -v "$PYTHON"; return; fi
    fail "PYTHON names $PYTHON, which is not a Python 3.11 or newer" "correct it, or unset it"
  fi
  for candidate in "$python" python3.13 python3.12 python3.11 python3; do
    if is_new_enough "$candidate"; then command -v "$candidate"; return; fi
  done
  fail "Python 3.11 or newer was not found" \
    "install it (Debian/Ubuntu: apt install python3 python3-venv; macOS: brew install python@3.13), or set PYTHON to its path"
}

# As the sandbox: the Java of JAVA_HOME, or else the one on the path. A JAVA_HOME that is too old is
# unset, because Spark would use it.
require_java() {
  local java version="" newest=""
  for java in ${JAVA_HOME:+"$JAVA_HOME/bin/java"} java; do
    version="$("$java" -version 2>&1 | sed -n 's/.*version "\(1\.\)\{0,1\}\([0-9]*\).*/\2/p' | head -n 1)" || true
    if [ -n "$version" ] && [ "$version" -ge 17 ]; then
      [ "$java" != java ] || unset JAVA_HOME
      return
    fi
    newest="${newest:-${version:+$java is version $version}}"
  done
  fail "Java 17 or newer was not found${newest:+ ($newest)}; the Kafka broker runs on it" \
    "Debian/Ubuntu: sudo apt-get install openjdk-17-jre-headless" \
    "Fedora/RHEL:   sudo dnf install java-17-openjdk-headless" \
    "Alpine:        sudo apk add openjdk17-jre-headless" \
    "macOS:         brew install openjdk@17" \
    "or set JAVA_HOME to the directory of one"
}

# Programs that tests start: the databases, a terminal, the reader of manual pages,
# the checker of alert rules. Debian's packages
# are installed when they are missing and this user may do so.
require_test_programs() {
  local missing=()
  find_program mariadbd || missing+=(mariadb-server)
  find_program postgres /usr/lib/postgresql/*/bin || missing+=(postgresql)
  find_program tmux || missing+=(tmux)
  find_program groff || missing+=(groff)
  find_program promtool || missing+=(prometheus)
  find_program zsh || missing+=(zsh)
  find_program fish || missing+=(fish)
  [ "${#missing[@]}" -gt 0 ] || return 0
  if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    fail "the tests start programs that are not installed: ${missing[*]}" \
      "Debian/Ubuntu: sudo apt-get install ${missing[*]}" \
      "the tiers pure and simulation need none of them: scripts/test pure simulation"
  fi
  say "installing the packages ${missing[*]} (once)"
  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"; } >/dev/null ||
    fail "apt-get could not install ${missing[*]}; see above"
}

find_program() {
  local name="$1"
  shift
  PATH="$PATH:/usr/sbin:/usr/local/sbin${*:+:$(IFS=:; echo "$*")}" command -v "$name" >/dev/null
}

# use_environment REQUIREMENTS...: a virtual environment with these hash-pinned files and this
# checkout. Installs a file again when it changed, and the checkout when pyproject.toml did; makes the
# environment again when PYTHON names another interpreter, or when making or installing was interrupted.
use_environment() {
  local base name options missing=()
  base="$(find_python)" || exit
  is_whole "$base" || make_environment "$base"
  for name in build "$@"; do is_installed "$name" "$root/requirements/$name.txt" || missing+=("$name"); done
  if [ "${#missing[@]}" -gt 0 ]; then
    say "installing $(printf 'requirements/%s.txt ' "${missing[@]}")into $venv (once):" \
      "about $(download_size "${missing[@]}") MB to download unless pip has them cached"
  fi
  for name in ${missing[@]+"${missing[@]}"}; do
    # Source distributions are built with the pinned tools of build.txt, not with downloaded ones.
    options=(--no-build-isolation --require-hashes -r "$root/requirements/$name.txt")
    [ "$name" != sample ] || options+=(--no-deps)
    pip_install "${options[@]}"
    fingerprint "$root/requirements/$name.txt" > "$venv/.pyconnect-$name"
  done
  if ! is_installed checkout "$root/pyproject.toml"; then
    pip_install --no-build-isolation --no-deps -e "$root"
    fingerprint "$root/pyproject.toml" > "$venv/.pyconnect-checkout"
  fi
}

# Says which files are downloaded, with their sizes. What pip fetches lies in $venv/.pyconnect-download.
pip_install() {
  local log="$venv/.pyconnect-pip.log"
  touch "$venv/.pyconnect-unfinished"
  mkdir -p "$venv/.pyconnect-download"
  TMPDIR="$venv/.pyconnect-download" "$python" -m pip install --disable-pip-version-check --progress-bar off "$@" 2>&1 |
    tee "$log" | awk '/^ *Downloading/ { print; fflush() }' >&2
  if [ "${PIPESTATUS[0]}" != 0 ]; then
    tail -n 20 "$log" >&2
    fail "pip could not install; see above" "run the same command again"
  fi
  rm "$venv/.pyconnect-unfinished"
}

fingerprint() { printf '%s ' "$root"; cksum < "$1"; }

is_installed() { [ "$(cat "$venv/.pyconnect-$1" 2>/dev/null)" = "$(fingerprint "$2")" ]; }

# Whether the environment is of this interpreter's installation, has pip, and was not left half-made.
is_whole() {
  [ ! -e "$venv/.pyconnect-unfinished" ] &&
    [ "$(installation_of "$python")" = "$(installation_of "$1")" ] &&
    "$python" -c 'import pip' 2>/dev/null
}

make_environment() {
  local base="$1"
  # Made with the installation's own interpreter: this one may be the environment's, which goes.
  base="$("$base" -c 'import sys; print(getattr(sys, "_base_executable", sys.executable))')"
  "$base" -c 'import ensurepip, venv' 2>/dev/null || fail "$base cannot make virtual environments" \
    "Debian/Ubuntu: sudo apt-get install python3-venv (of this version: $("$base" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])'))"
  if [ -e "$venv" ] && [ "$venv" != "$root/.venv" ] && [ ! -e "$venv/pyvenv.cfg" ]; then
    fail "PYCONNECT_VENV names $venv, which is not a virtual environment" "remove it, or name another directory"
  fi
  say "making the virtual environment $venv with $("$base" -V) ($base)"
  "$base" -m venv --clear "$venv" || fail "the virtual environment could not be made; see above"
}

# Megabytes of the wheels and source distributions that these requirement files name, roughly.
# Most of `reconcile` is Spark, in the one file of pyspark.
download_size() {
  local name sum=0
  for name in build "$@"; do
    case "$name" in
      build) sum=$((sum + 1)) ;;
      runtime) sum=$((sum + 14)) ;;
      dev) sum=$((sum + 62)) ;;
      reconcile) sum=$((sum + 500)) ;;
      reconcile-connect) sum=$((sum + 540)) ;;
      sample) sum=$((sum + 9)) ;;
      sql) sum=$((sum + 4)) ;;
      lake) sum=$((sum + 85)) ;;
      docs) sum=$((sum + 17)) ;;
    esac
  done
  echo "$sum"
}

# Said before a command that fetches them on first use.
announce_jars() {
  [ -n "${KAFKA_HOME:-}" ] || say "Kafka's jars: 54 MB, fetched on first use into the user's cache"
}
