# SPDX-License-Identifier: Apache-2.0
# What ptxas.awk, loops.awk and ../hip/code.awk share: names of kernels, what they may spill, errors, and that none is missing.

# A kernel's symbol in words, as "dq mx32 stale 128" or "dq tile e5m2 matched 64"; of others nothing.
function name_of(symbol,   name, e5m2) {
  if (!match(symbol, /(quantise|forward|delta_sums|dq|dkv|scaled_atom)_kernel/)) return ""
  name = substr(symbol, RSTART, RLENGTH - length("_kernel"))
  e5m2 = symbol ~ /e5m2/
  sub(/14e5m2_gradientsINS[0-9A-Z]*_/, "", symbol)
  if (match(symbol, /6recipe[0-9](mx32|tile|token)E/)) name = name " " substr(symbol, RSTART + 8, RLENGTH - 9)
  if (e5m2) name = name " e5m2"
  if (match(symbol, /5delta[0-9]+(matched|consistent|stale)E/)) {
    symbol = substr(symbol, RSTART + 6)
    sub(/^[0-9]+/, "", symbol)
    name = name " " substr(symbol, 1, index(symbol, "E") - 1)
  }
  if (symbol ~ /Li(64|128)ELb0E/) name = name " by_EX2"
  if (match(symbol, /Li(64|128)E/)) name = name " " substr(symbol, RSTART + 2, RLENGTH - 3)
  return name
}

# The table of what may be spilled, first on the command line.
FILENAME == ARGV[1] {
  if ($1 == sm) {
    key = $2
    for (i = 3; i <= NF - 2; ++i) key = key " " $i
    most_stored[key] = $(NF - 1)
    most_in_loop[key] = $NF
  }
  next
}

function error(text) {
  print "error: " text
  failed = 1
}

function verdict(seen) {
  if (seen != kernels) error(seen + 0 " kernels are named, not " kernels)
  exit failed
}
