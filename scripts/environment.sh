#!/bin/sh
# Makes a Python environment and installs the project into it. Called by the Makefile:
#   scripts/environment.sh FOLDER REQUIREMENT…
set -eu
folder=$1
shift
python=${PYTHON:-python3}

say() { printf '\033[1m==> %s\033[0m\n' "$*"; }
fail() { printf 'error: %s\n' "$*" >&2; exit 1; }

command -v "$python" > /dev/null || fail "no $python on the PATH: install Python 3.11 or newer, or name one with PYTHON=…"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
  fail "$("$python" --version) is too old: pyhudi needs 3.11 or newer; name another one with PYTHON=…"

if [ ! -x "$folder/bin/python" ] || ! "$folder/bin/python" -m pip --version > /dev/null 2>&1; then
  say "making the Python environment $folder"
  rm -rf "$folder"
  if ! "$python" -m venv "$folder" > /dev/null 2>&1; then
    # Debian keeps the part of Python that makes environments in a package of its own
    version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    say "this Python cannot make environments; trying apt-get install python$version-venv"
    { [ "$(id -u)" = 0 ] && apt-get update -qq && apt-get install -y -qq "python$version-venv"; } ||
      fail "python$version-venv is missing: install it (apt-get install python$version-venv) and run make again"
    rm -rf "$folder"
    "$python" -m venv "$folder"
  fi
fi
say "installing $*"
"$folder/bin/python" -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
"$folder/bin/python" -m pip install --quiet --disable-pip-version-check "$@"
