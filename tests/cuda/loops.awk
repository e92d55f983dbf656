# SPDX-License-Identifier: Apache-2.0
# What the kernels' main loops are made of, from nvdisasm: every product is one of the unit that the kernels are written
# for, and FP32 arithmetic is that of softmax, rescaling, scales, P and dS.
# awk -f kernels.awk -f loops.awk -v kernels=20 -v sm=100a -v unit=tcgen05 spills.txt code.sass
#
# A loop is found in the graph of basic blocks, wherever the compiler put them: all blocks that a block reaches and that
# reach it. So copies, products and rows of a kernel with roles are three loops; waits and unlikely ways belong to
# theirs.
BEGIN {
  # A product without scales names no tensor memory behind the instruction's descriptor.
  product["tcgen05"] = "^UTCQMMA (gdesc|tmem)[^,]*, gdesc[^,]*, tmem[^,]*, tmem[^,]*, idesc[^,]*, tmem"
  product["wgmma"] = "^QGMMA[.]64x[0-9]+x32[.]F32[.]E4M3[.]E4M3 "
  product["mma_f16"] = "^HMMA[.]16816[.]F32 "  # of FP8 numbers on sm_90: ptx/mma.hpp
  product["mma"] = "^QMMA[.]16832[.]F32[.]E4M3[.]E4M3 "
  product["mma_scaled"] = "^QMMA[.]SF[.]16832[.]F32[.]E4M3[.]E4M3[.]E8 "
  has_groups = unit == "tcgen05" || unit == "wgmma"
}

# Blocks 1 to blocks of a kernel: lines[b], number[b, what], and edges next_of[b, 1 .. nexts[b]], back_of likewise.
function new_block() {
  ++blocks
  if (falls_through) edge(blocks - 1, blocks)
  falls_through = 1
}
function edge(a, b) {
  next_of[a, ++nexts[a]] = b
  back_of[b, ++backs[b]] = a
}
function note(what, n) {
  number[blocks, what] += n
  total[what] += n
}

/^[ \t]*\.section[ \t]+\.text\./ {
  end_kernel()
  name = $0 ~ /run_blocks/ ? name_of($0) : ""
  next
}
name == "" { next }
/^\.L_x_[0-9]+:/ {
  new_block()
  label[substr($1, 1, length($1) - 1)] = blocks
}
/^[ \t]*\/\*[0-9a-f]+\*\// {
  if (!falls_through) new_block()
  conditional = $2 ~ /^@/
  sub(/^[ \t]*\/\*[0-9a-f]+\*\/[ \t]+(@!?U?P[0-9T]+ +)?/, "")
  operation = $1
  ++lines[blocks]
  if (operation ~ /^(BRA|BSSY)/) {
    match($0, /`\([^)]*\)/)
    to = substr($0, RSTART + 2, RLENGTH - 3)
  }
  if (operation ~ /^BSSY/) meet[substr($2, 1, 2)] = to  # B0 to B9: where the threads that wait at BSYNC go on
  if (operation ~ /^BSYNC/) jump[++jumps] = blocks " " meet[substr($2, 1, 2)]
  if (operation ~ /^BRA/) jump[++jumps] = blocks " " to
  if (operation ~ /^(BRA|BSYNC)/) {
    if (!conditional && (operation ~ /^BSYNC/ || $2 ~ /^`/)) falls_through = 0
    else new_block()
  }
  if (operation ~ /^(EXIT|RET)/ && !conditional) falls_through = 0
  # What makes ptxas 13.0 write it, and how not to: simt/forward.hpp.
  if (operation ~ /^VIMNMX.*RELU/ && $0 ~ /, P[0-9]/) error(name ": a predicate that is wrong on an H200: " $0)
  if (operation ~ /^(BRX|JMX|JMP)/) error(name ": loops.awk does not follow " $0)

  if (operation ~ /MMA(\.|$)/ && operation !~ /^[HF]FMA/) {
    note($0 ~ product[unit] ? "products" : "others", 1)
    if ($0 !~ product[unit]) other = $0
  }
  if (operation ~ /^(UBLKCP|UTMALDG)/) note("copies", 1)
  is_move = operation ~ /^HFMA2/ && $0 ~ /-RZ, RZ/
  if (operation ~ /^U?[FHD]FMA/ && !is_move) note("fma", operation ~ /FMA2/ ? 2 : 1)
  if (operation ~ /^U?(FADD|FMUL|FHADD|HADD2|HMUL2|DADD|DMUL)/) note("sums", operation ~ /^F(ADD|MUL)2/ ? 2 : 1)
  if (operation ~ /^LDTM/) note("loads", 1)
  if (operation ~ /^MUFU\.EX2/) note("exponentials", 1)
  if (operation ~ /^MUFU\.RCP/) note("reciprocals", 1)
  if (operation ~ /^(STL|LDL)/) note("local", 1)
  if (operation ~ /^USETMAXREG\.TRY_ALLOC/) note("raises", 1)
}
END {
  end_kernel()
  verdict(seen)
}

# What block b reaches.
function reach(b, reached, edges, degree,   work, top, i, to) {
  split("", reached)
  work[top = 1] = b
  while (top > 0) {
    b = work[top--]
    for (i = 1; i <= degree[b]; ++i) {
      to = edges[b, i]
      if (!(to in reached)) {
        reached[to] = 1
        work[++top] = to
      }
    }
  }
}
# Instructions between block a and each of the loop's, by the shortest way, which leads over via.
function ways(a, cost, via, edges, degree,   b, i, to, changed) {
  split("", cost)
  split("", via)
  cost[a] = 0
  do {
    changed = 0
    for (b in loop)
      for (i = 1; b in cost && i <= degree[b]; ++i) {
        to = edges[b, i]
        if (to in loop && (!(to in cost) || cost[b] + lines[b] < cost[to])) {
          cost[to] = cost[b] + lines[b]
          via[to] = b
          changed = 1
        }
      }
  } while (changed)
}
function add_up(b,   key) {
  for (key in total) sum[key] += number[b, key]
  sum["lines"] += lines[b]
}

function is_work(b) {
  return number[b, "products"] + number[b, "copies"] + number[b, "exponentials"] + number[b, "fma"] > 0
}

function end_kernel(   i, part, b, text) {
  if (name != "") {
    ++seen
    for (i = 1; i <= jumps; ++i) {
      split(jump[i], part, " ")
      if (part[2] in label) edge(part[1], label[part[2]])
      else error(name ": a jump to " part[2] ", which is nowhere")
    }
    text = name ":"
    for (i = 1; i <= blocks; ++i)
      if (!(i in looked_at) && is_work(i)) {
        reach(i, ahead, next_of, nexts)
        if (!(i in ahead)) continue
        reach(i, behind, back_of, backs)
        split("", loop)
        split("", sum)
        for (b in ahead) if (b in behind) {
          loop[b] = looked_at[b] = 1
          add_up(b)
        }
        text = text judge_loop()
      }
    print text
    judge_kernel()
  }
  blocks = jumps = falls_through = loops_of_products = loops_of_rows = fma_of_rows = 0
  split("", lines); split("", number); split("", total); split("", label); split("", looked_at)
  split("", next_of); split("", nexts); split("", back_of); split("", backs)
}

function judge_loop(   text) {
  if (name ~ /^quantise/) return ""
  if (sum["local"] > most_in_loop[name] + 0)
    error(name ": " sum["local"] " accesses to local memory in a loop, more than " most_in_loop[name] + 0)
  if (sum["products"] > 0) {
    ++loops_of_products
    text = " " sum["products"] " products"
  }
  if (sum["exponentials"] == 0) {  # a role that only copies or multiplies
    if (sum["products"] + sum["copies"] > 0 && sum["fma"] + sum["sums"] > 0)
      error(name ": " sum["fma"] + sum["sums"] " FFMA, FADD and FMUL in a loop of products or copies")
    # The end of dQ adds the part of the keys' mean, 32 channels a turn.
    if (sum["fma"] > (name ~ /^dq/ ? 32 : 0)) error(name ": " sum["fma"] " FFMA in a loop without exponentials")
    if (unit == "tcgen05" && sum["products"] > 0 && sum["products"] != products_of_loop())
      error(name ": " sum["products"] " products in the main loop, not " products_of_loop())
    return text == "" ? "" : text ";"
  }
  ++loops_of_rows
  fma_of_rows += sum["fma"]
  if (unit != "tcgen05") return text ", " sum["fma"] " FFMA, " sum["local"] + 0 " of local memory;"
  if (sum["products"] > 0) error(name ": products between exponentials")
  return judge_rows()
}

# A product per 32 channels or tokens, for each of two groups of rows (forward) or halves of a tile (64 tokens).
function products_of_loop(   part, n, deep) {
  n = split(name, part, " ")
  deep = part[n] / 32
  if (part[1] == "forward") return 2 * (deep + 4)        # S; P V
  if (part[1] == "delta_sums") return 2 * (2 * deep)     # S, dP
  if (part[1] == "dq") return 2 * (2 * deep + 2)         # and dS K
  return 2 * (2 * deep + 2 + 2)                          # and P^T dO, dS^T Q
}

# A loop over a thread's row, 128 elements of S a step in the forward and 64 elsewhere. The shortest way through it,
# from where S is read, is that of tiles without mask, softcap or anything strange. An element takes there
#
#   FFMA    1, its exponent scale * s - M; in the delta pass 1 more, the sum of P (dP - c)
#   others  forward 1: l. Delta pass 2: n and dP - c. dQ 4: P ((dP - c) - delta), and the scale of dS. dK and dV 5: the
#           scale of P, too. Consistent 2 more: the rounded P unpacked and weighted; in dK and dV 3, since 8 - M is an
#           element's own there
#
# and a step some for M, alpha and l. Of exponentials of the forward and the delta pass a quarter are polynomials, or none: 6 FFMA and 2 FADD. On all ways together an exponential takes 1 FFMA (that of a tanh 6, and it has a reciprocal), a cap's
# derivative 1, a sum 1 an element, and the mean of dP a division.
function judge_rows(   elements, polynomials, fma, others, all, first, best, b) {
  elements = name ~ /^forward/ ? 128 : 64
  polynomials = name ~ /^(forward|delta_sums)/ && name !~ /by_EX2/ ? elements / 4 : 0
  fma = name ~ /^delta_sums/ ? 2 : 1
  others = name ~ /^forward/ ? 1 : name ~ /^delta_sums/ ? 2 : name ~ /^dq/ ? 4 : 5
  if (name ~ /(dq|dkv).*consistent/) others += name ~ /^dq/ ? 2 : 3
  all = sum["exponentials"] + 7 * polynomials + 6 * sum["reciprocals"] + (fma - 1) * elements + 16
  if (sum["fma"] > all) error(name ": " sum["fma"] " FFMA in the loop over rows, more than " all)

  first = 0
  for (b in loop) if (number[b, "loads"] > 0 && (first == 0 || b + 0 < first)) first = b + 0
  ways(first, ahead_cost, ahead_via, next_of, nexts)
  ways(first, back_cost, back_via, back_of, backs)
  best = 0
  for (b in loop)
    if (number[b, "exponentials"] > 0 && (!best || there_and_back(b) < there_and_back(best))) best = b
  split("", sum)
  split("", way)
  for (b = best; b != first; b = ahead_via[b]) way[b] = 1
  for (b = best; b != first; b = back_via[b]) way[b] = 1
  way[first] = 1
  for (b in way) add_up(b)
  if (sum["exponentials"] < elements - polynomials || sum["exponentials"] > elements - polynomials + 1)
    error(name ": " sum["exponentials"] " exponentials for " elements " elements, " polynomials " of them polynomials")
  if (sum["fma"] > fma * elements + 6 * polynomials + 1)
    error(name ": " sum["fma"] " FFMA for " elements " elements, more than " fma " each")
  if (sum["sums"] > others * elements + 2 * polynomials + 16)
    error(name ": " sum["sums"] " sums and factors for " elements " elements, more than " others " each")
  return sprintf(" rows: %d EX2, %d FFMA, %d FADD and FMUL of %d instructions for %d elements;", sum["exponentials"],
                 sum["fma"], sum["sums"], sum["lines"], elements)
}
function there_and_back(b) { return ahead_cost[b] + lines[b] + back_cost[b] }

function judge_kernel() {
  if (total["others"] > 0) error(name ": " total["others"] " products of another unit, as " other)
  if (name ~ /^quantise/) return
  if (loops_of_products != 1 || loops_of_rows != (name ~ /^scaled_atom/ ? 0 : 1))
    error(name ": " loops_of_products + 0 " loops with products, " loops_of_rows + 0 " with exponentials")
  if (has_groups && total["raises"] != 1) error(name ": registers are raised " total["raises"] + 0 " times")
  # Divisions, logarithms and the like before and after the loops.
  if (unit == "tcgen05" && total["fma"] - fma_of_rows > 48)
    error(name ": " total["fma"] - fma_of_rows " FFMA outside of loops")
}
