# SPDX-License-Identifier: Apache-2.0
# Hostile .npy files: each is exit code 2, one line that names the file, and no output; none makes the program allocate.
ulimit -v 4000000

# raw FILE HEADER [DATA BYTES]: version 1.0 with this dictionary and so many zero bytes.
raw() {
  local length=${#2}
  {
    printf '\x93NUMPY\x01\x00'
    printf "\\x$(printf %02x $((length % 256)))\\x$(printf %02x $((length / 256)))"
    printf '%s' "$2"
    head -c "${3:-0}" /dev/zero
  } >"$1"
}
refuse() { # TEXT FILE
  expect 2 "$1" attention --backend "$backend" --q "$2" --k k.npy --v v.npy --out o
  has stderr.txt "$2"
  absent o
}
shape() { # SHAPE [DATA BYTES]
  raw x.npy "{'descr': '<f4', 'fortran_order': False, 'shape': $1, }" "${2:-0}"
}

refuse 'no such file' missing.npy
refuse 'not a regular file' .
refuse 'not a regular file' /dev/zero
: >x.npy; refuse 'too short' x.npy
printf 'PK\x03\x04 this is a zip archive' >x.npy; refuse 'not a .npy file' x.npy
printf '\x93NUMPY\x04\x00\x10\x00\x00\x00' >x.npy; refuse 'version 4; allowed: 1, 2, 3' x.npy
printf '\x93NUMPY\x00\x00\x10\x00\x00\x00' >x.npy; refuse 'version 0' x.npy
printf '\x93NUMPY\x01\x00\xff\xff{' >x.npy; refuse 'truncated' x.npy
printf '\x93NUMPY\x02\x00\xff\xff\xff\xff{' >x.npy; refuse 'truncated' x.npy
head -c 1000 q.npy >x.npy; refuse 'truncated' x.npy
{ cat q.npy; printf x; } >x.npy; refuse 'trailing bytes' x.npy

shape '(2, 12, 4, 32)' 100; refuse 'truncated' x.npy
shape '(2, 12, 4, -32)' 100; refuse 'negative' x.npy
shape '(9223372036854775808, 1, 1, 1)'; refuse '64 bits' x.npy
shape '(4294967296, 4294967296, 4, 32)'; refuse '64 bits' x.npy
shape '(4611686018427387904, 1, 1, 1)'; refuse '64 bits' x.npy
shape '(1099511627776, 0, 4, 32)'; refuse 'no elements' x.npy
shape '(1000000, 1000, 4, 32)'; refuse 'truncated' x.npy
shape '(2, x)'; refuse 'tuple of integers' x.npy
shape '(2, 12' 4; refuse 'tuple of integers' x.npy
shape '2' 8; refuse 'dictionary' x.npy
raw x.npy "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 12, 4, 32), }" 12288; refuse 'Fortran order; allowed: C order' x.npy
raw x.npy "{'descr': '>f4', 'fortran_order': False, 'shape': (2, 12, 4, 32), }" 12288; refuse 'big-endian' x.npy
raw x.npy "{'descr': '|O', 'fortran_order': False, 'shape': (2, 12, 4, 32), }" 12288; refuse 'Python objects' x.npy
raw x.npy "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 12, 4, 32), }" 24576; refuse 'allowed: float32' x.npy
raw x.npy "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }" 4; refuse 'structured' x.npy
raw x.npy "{'descr': '<f4', 'fortran_order': False, }"; refuse 'must name' x.npy
raw x.npy "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}" 4; refuse 'repeated' x.npy
raw x.npy "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (1,)}" 4; refuse 'True or False' x.npy
raw x.npy "{'descr': '<f4"; refuse 'unfinished' x.npy
raw x.npy ""; refuse 'dictionary' x.npy

# Other writers' headers: any order of keys, double quotes, any white space, versions 2 and 3.
tail -c 12288 q.npy >data
header='{"shape":(2,12,4,32),  "fortran_order":False,"descr":"<f4"}'
{ raw x.npy "$header"; cat data >>x.npy; }
expect 0 '' attention --backend "$backend" --q x.npy --k k.npy --v v.npy --out o1
expect 0 '' "${attention[@]}" --out o2
cmp -s o1/o.npy o2/o.npy || fail 'the order of keys in a header changes the result'
for version in 2 3; do
  { printf "\\x93NUMPY\\x0$version\\x00\\x$(printf %02x ${#header})\\x00\\x00\\x00%s" "$header"; cat data; } >x.npy
  expect 0 '' attention --backend "$backend" --q x.npy --k k.npy --v v.npy --out o3
  cmp -s o3/o.npy o2/o.npy || fail "version $version of the format changes the result"
done

# A line break in a file name does not break the one line.
expect 2 'no such file' attention --q "$(printf 'a\nb.npy')" --k k.npy --v v.npy --out o
