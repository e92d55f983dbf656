#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Black-box tests of the program:  run.sh GROUP PROGRAM MAKE_NPY [BACKEND]
# The groups are in groups/GROUP.sh; they use the functions below. Exit code 1 when a check failed, 77 when BACKEND (cpu
# unless given) cannot run here.
set -u
here=$(cd "$(dirname "$0")" && pwd)
group=$1
octavo=$2
make_npy=$3
backend=${4:-cpu}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failures=0

fail() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}

# expect CODE TEXT ARGUMENT...: the program ends with CODE and says TEXT (a regular expression, may be empty) on standard
# output or error; a failure is one line on standard error.
expect() {
  local code=$1 text=$2 got
  shift 2
  timeout 120 "$octavo" "$@" >stdout.txt 2>stderr.txt
  got=$?
  [ "$got" = "$code" ] || fail "octavo $*: exit code $got, not $code: $(cat stderr.txt)"
  if [ -n "$text" ] && ! cat stdout.txt stderr.txt | grep -qE -- "$text"; then
    fail "octavo $*: does not say '$text' but: $(cat stdout.txt stderr.txt | head -5)"
  fi
  if [ "$code" != 0 ] && [ "$(grep -vc warning: stderr.txt)" != 1 ]; then
    fail "octavo $*: $(wc -l <stderr.txt) lines on standard error, not one: $(cat stderr.txt)"
  fi
}

# has FILE TEXT: a file contains what the regular expression says.
has() {
  grep -qE -- "$2" "$1" || fail "$1 has no '$2': $(head -40 "$1")"
}

# shows FILE TEXT: dtype and shape of a .npy file.
shows() {
  local shown
  shown=$("$make_npy" show "$1" 2>&1)
  [[ "$shown" == $2 ]] || fail "$1 is '$shown', not '$2'"
}

# holds FOLDER NAME...: exactly these files, hidden ones included.
holds() {
  local folder=$1 found wanted
  shift
  found=$(ls -A "$folder" | LC_ALL=C sort | tr '\n' ' ')
  wanted=$(printf '%s\n' "$@" | LC_ALL=C sort | tr '\n' ' ')
  [ "$found" = "$wanted" ] || fail "$folder holds: $found; not: $wanted"
}

# absent FOLDER: no folder, or nothing in it.
absent() {
  [ ! -e "$1" ] || [ -z "$(ls -A "$1")" ] || fail "$1 was left behind with: $(ls -A "$1")"
}

if ! "$octavo" backends | grep -q "^$backend compiled=yes runnable=yes"; then
  echo "skipped: backend $backend cannot run here"
  exit 77
fi

npy() { "$make_npy" "$@" || fail "make_npy $*"; }
npy q.npy f32 2,12,4,32 1
npy k.npy f32 2,20,2,32 2
npy v.npy f32 2,20,2,32 3
npy do.npy f32 2,12,4,32 4
qkv=(--q q.npy --k k.npy --v v.npy)
attention=(attention --backend "$backend" "${qkv[@]}")

source "$here/groups/$group.sh"
[ "$failures" = 0 ] || { echo "$failures checks failed"; exit 1; }
echo "$group: all checks passed with backend $backend"
