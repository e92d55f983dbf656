# SPDX-License-Identifier: Apache-2.0
# Output folders: what can be found out is found out before anything is computed, a run that fails leaves nothing behind,
# and a run that succeeds leaves its own results and nobody else's.
empty() { # FOLDER: it is there, and nothing in it
  if [ ! -d "$1" ]; then fail "$1 is gone"; else absent "$1"; fi
}
: >file
expect 2 'cannot be created' "${attention[@]}" --out file
expect 2 'cannot be created' "${attention[@]}" --out file/below
expect 2 '' "${attention[@]}" --out /dev/null
mkdir -p taken/o.npy
expect 2 'taken/o.npy is a folder, but a result has that name' "${attention[@]}" --out taken
holds taken o.npy
mkdir -p taken_audit/audit.png taken_json
expect 2 'is a folder, but a result' audit --backend "$backend" "${qkv[@]}" --dout do.npy --out taken_audit
holds taken_audit audit.png
if [ "$(id -u)" != 0 ]; then
  mkdir locked && chmod a-w locked
  expect 2 'cannot be' "${attention[@]}" --out locked
fi

# bench: nothing was timed when the name of the report turns out to be no file's. This shape would take minutes.
long=(bench --backend "$backend" --shape 8,16,16,8192,8192,64)
mkfifo pipe
for name in taken_json taken_json/ . ..; do
  expect 2 'is a folder, but a result has that name' "${long[@]}" --json $name
done
expect 2 'is not a regular file, but a result has that name' "${long[@]}" --json pipe
expect 2 'too long' "${long[@]}" --json "$(printf 'x%.0s' {1..300})"
[ -p pipe ] || fail 'a pipe was replaced by a report'

# Folders that a run made are gone when it fails, parents too; those that were there stay.
mkdir parent
expect 2 'too long' "${long[@]}" --json "parent/a/b/$(printf 'x%.0s' {1..300})"
empty parent
expect 2 'cannot be created' "${attention[@]}" --out "parent/a/b/$(printf 'x%.0s' {1..300})"
empty parent
# A full disk: files end after 4 blocks of 512 bytes, in the middle of o.npy. The message names what could not be written.
(
  trap '' XFSZ
  ulimit -f 4
  "$octavo" "${attention[@]}" --out parent/a/b
) >stdout.txt 2>stderr.txt
code=$?
[ $code = 1 ] || fail "a full disk: exit code $code, not 1"
has stderr.txt 'octavo: parent/a/b/o.npy: cannot be written'
empty parent

# Parents are created, and an existing folder keeps what is not a result.
mkdir kept && : >kept/mine
expect 0 '' "${attention[@]}" --out kept
holds kept mine lse.npy o.npy report.json
expect 0 '' "${attention[@]}" --out a/b/c
holds a/b/c lse.npy o.npy report.json
# An error leaves the results of an earlier run as they were.
cp -r kept before
expect 2 '' "${attention[@]}" --dout q.npy --sink q.npy --out kept
diff -r kept before >/dev/null || fail 'a refused run changed an existing folder'

# Results of an earlier run do not stay beside a new report.
expect 0 '' "${attention[@]}" --dtype bf16 --recipe mx32 --dout do.npy --delta consistent --o-residual --save-payloads --out kept
holds kept mine lse.npy o.npy report.json o_residual.npy d{q,k,v}.npy delta.npy rowsum.npy l1.npy \
  {q,k,v,do}{8,_scale,8_columnwise,_scale_columnwise}.npy
expect 0 '' "${attention[@]}" --out kept
holds kept mine lse.npy o.npy report.json
