# SPDX-License-Identifier: Apache-2.0
# From ptxas -v: registers are taken over as asked (C7508 says they are not), products are not waited for one by one (C7510
# to C7514), local memory holds no more than spills.txt says (what is there on purpose, not spilled, only in kernels that it
# names), and shared memory is within what a block can have.
# awk -f kernels.awk -f ptxas.awk -v kernels=28 -v sm=90a spills.txt report.txt
BEGIN { most_shared = sm ~ /^12/ ? 101376 : 232448 }  # 99 and 227 KB, CUDA's programming guide

/\(C75[0-9][0-9]\)/ { error($0) }
/Compiling entry function/ {
  name = name_of($0)
  if ($0 ~ /shared_bytes_of/) {  # the kernel's name and the number are its arguments
    match($0, /Li[0-9]+EEEvv/)
    shared[name] = substr($0, RSTART + 2, RLENGTH - 7)
    name = ""
  }
}
/bytes stack frame/ { stack[name] = $1; stored[name] = $5 }
/Used [0-9]+ registers/ {
  if (name == "") next
  order[++seen] = name
  match($0, /Used [0-9]+/)
  registers[name] = substr($0, RSTART + 5, RLENGTH - 5)
  if (match($0, /[0-9]+ bytes smem/)) static_shared[name] = substr($0, RSTART) + 0
}
END {
  for (i = 1; i <= seen; ++i) {
    name = order[i]
    if (!(name in shared)) error("the shared memory of " name " is not known")
    bytes = shared[name] + static_shared[name]
    may_keep = name in most_stored  # to be asked before most_stored[name] is, which would put it there
    printf "sm_%s %s: %d registers, %d bytes spilled, %d of shared memory\n", sm, name, registers[name], stored[name],
           bytes
    if (stored[name] > most_stored[name] + 0)
      error(name " spills " stored[name] " bytes, more than " most_stored[name] + 0)
    if (stack[name] > 0 && stored[name] == 0 && !may_keep)
      error(name " keeps " stack[name] " bytes in local memory")
    if (bytes > most_shared) error(name " takes " bytes " bytes of shared memory, more than " most_shared)
  }
  verdict(seen)
}
