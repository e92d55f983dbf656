#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What llvm-mca says of the main loop of a kernel for CDNA3, by no more than the compiler's assembler.

    estimate.py FILE.s --products P --exponentials E [--kernel NAME] [--waves N] [--uncounted U] [--at-least SHARE]

FILE.s comes from clang -x hip --offload-arch=gfx942 --offload-device-only -S. NAME is a regular expression, for symbols.
The main loop of a kernel is the loop that
has the most matrix instructions in it. Of the ways through one turn of it, that one is taken which runs P matrix
instructions (or, failing that, the next larger number of them) and E exponentials at least, fetches the most from memory
and, among those, has the fewest instructions: masks, soft caps, NaNs and large scores, which have branches of their own,
are left out.

It prints the clocks of that way: of the matrix unit (4 per pass), of the vector unit (4 to issue an instruction, matrix
instructions too, and 16 for a transcendental one) and of a wave alone by llvm-mca, which issues in order and waits where a
register is not there yet. With N waves on a SIMD, one waits while others run: the estimate is the largest of the three,
the wave's clocks over N. The share of the matrix peak is the matrix unit's clocks in it, and with --uncounted also that
without U of the products, such as those that sum. It fails where the share (without those) is less than SHARE percent, or
no kernel is NAME.
"""

import argparse
import re
import subprocess
import sys

CYCLES_PER_PASS = 4
PASSES = {"v_mfma_f32_16x16x32": 4, "v_mfma_f32_32x32x16": 8}  # AMD Matrix Instruction Calculator: 16 and 32 clocks
TRANSCENDENTAL = re.compile(r"v_(exp|log|rcp|rsq|sqrt|sin|cos)_")


def kernels(text):
    """Name and lines of every kernel."""
    for match in re.finditer(r"^(\w+):\s+; @\1\n(.*?)^\s*s_endpgm", text, re.S | re.M):
        yield match.group(1), match.group(2).splitlines()


class Block:
    def __init__(self, name):
        self.name, self.code, self.next = name, [], []

    def count(self, pattern):
        return sum(1 for line in self.code if re.match(pattern, line))


def blocks_of(lines):
    """Basic blocks in the order of the text, each with the names of those that can follow."""
    blocks = {}
    order = []

    def start(name):
        block = Block(name)
        blocks[name] = block
        order.append(block)
        return block

    current = start("entry")
    unnamed = 0
    ended = False
    for line in lines:
        label = re.match(r"^(\.LBB\w+):", line)
        code = re.sub(r"\s*;.*", "", line).strip()
        if label:
            if not ended:
                current.next.append(label.group(1))
            current = start(label.group(1))
            ended = False
            continue
        if not code or code.startswith("."):
            continue
        if ended:  # after a branch
            unnamed += 1
            current = start(f"after{unnamed}")
            ended = False
        current.code.append(code)
        branch = re.match(r"s_(branch|cbranch_\w+)\s+(\.LBB\w+)", code)
        if branch:
            current.next.append(branch.group(2))
            if branch.group(1) != "branch":
                unnamed += 1
                name = f"after{unnamed}"
                current.next.append(name)
                current = start(name)
            else:
                ended = True
    return blocks, order


def loops_of(blocks, order):
    """Natural loops, by header: the blocks between a header and the branches back to it."""
    place = {block.name: i for i, block in enumerate(order)}
    before = {name: [] for name in blocks}
    for block in order:
        for name in block.next:
            if name in blocks:
                before[name].append(block.name)

    def dominators():
        names = [b.name for b in order]
        dominated = {name: set(names) for name in names}
        dominated[names[0]] = {names[0]}
        changed = True
        while changed:
            changed = False
            for name in names[1:]:
                known = [dominated[p] for p in before[name]]
                new = set.intersection(*known) | {name} if known else {name}
                if new != dominated[name]:
                    dominated[name], changed = new, True
        return dominated

    dominated = dominators()
    loops = {}
    for block in order:
        for header in block.next:
            if header in blocks and header in dominated[block.name]:
                body = loops.setdefault(header, {header})
                work = [block.name]
                while work:
                    name = work.pop()
                    if name not in body:
                        body.add(name)
                        work += before[name]
    return loops, place


def hot_way(blocks, loop, header, products, exponentials):
    """Code of the way through one turn that the description above names."""
    sys.setrecursionlimit(100000)
    known = {}
    open_names = set()

    def ways(name):
        """The best way from a block to the header by its (products, exponentials): (fetches, -instructions, names)."""
        if name in known:
            return known[name]
        if name in open_names:
            return {}  # an inner loop's way back
        open_names.add(name)
        block = blocks[name]
        found = {}
        matrix, exps = block.count("v_mfma"), block.count("v_exp")
        fetches = block.count("global_load_dwordx4|ds_write_b128")
        for following in block.next:
            rest = {(0, 0): (0, 0, [])} if following == header else ways(following) if following in loop else {}
            for (p, e), way in rest.items():
                key = (p + matrix, min(e + exps, exponentials))
                candidate = (way[0] + fetches, way[1] - len(block.code), [name] + way[2])
                if key not in found or candidate[:2] > found[key][:2]:
                    found[key] = candidate
        open_names.discard(name)
        known[name] = found
        return found

    all_ways = ways(header)
    enough = [key for key in all_ways if key[0] >= products and key[1] >= exponentials]
    if not enough:
        sys.exit(f"no way through the loop runs {products} products and {exponentials} exponentials: {list(all_ways)}")
    way = all_ways[min(enough)]
    return [line for name in way[2] for line in blocks[name].code]


def matrix_clocks(code):
    return sum(passes * CYCLES_PER_PASS for line in code for name, passes in PASSES.items() if line.startswith(name))


def vector_clocks(code):
    clocks = 0
    for line in code:
        if line.startswith("v_"):
            clocks += 16 if TRANSCENDENTAL.match(line) else 4
    return clocks


def mca(code, program, keep):
    straight = [line for line in code if not re.match(r"s_(c?branch|endpgm)", line)]
    text = "\n".join(straight) + "\n"
    if keep:
        with open(keep, "w") as file:
            file.write(text)
    turns = 20
    report = subprocess.run([program, "-march=amdgcn", "-mcpu=gfx942", f"-iterations={turns}", "-"], input=text,
                            capture_output=True, text=True, check=True).stdout
    # The model's cycle is the four clocks in which a wave issues an instruction.
    return 4 * int(re.search(r"Total Cycles:\s+(\d+)", report).group(1)) / turns


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("file")
    options.add_argument("--products", type=int, required=True, help="matrix instructions of a turn")
    options.add_argument("--exponentials", type=int, required=True, help="of a turn")
    options.add_argument("--kernel", default="", help="only kernels whose symbol this is found in")
    options.add_argument("--waves", type=int, default=2, help="on a SIMD")
    options.add_argument("--uncounted", type=int, default=0, help="products of a turn that the share is said without")
    options.add_argument("--at-least", type=float, default=0, metavar="SHARE", help="of the matrix peak, in percent")
    options.add_argument("--mca", default="llvm-mca-19", help="the program llvm-mca")
    options.add_argument("--keep", help="write the way there")
    arguments = options.parse_args()
    with open(arguments.file) as file:
        text = file.read()
    estimated = below = 0
    for name, lines in kernels(text):
        if not re.search(arguments.kernel, name):
            continue
        blocks, order = blocks_of(lines)
        loops, _ = loops_of(blocks, order)
        products = {h: sum(blocks[n].count("v_mfma") for n in body) for h, body in loops.items()}
        if not products or max(products.values()) == 0:
            continue
        # The innermost of those that hold the most products.
        most = max(products.values())
        header = min((h for h in loops if products[h] == most), key=lambda h: len(loops[h]))
        code = hot_way(blocks, loops[header], header, arguments.products, arguments.exponentials)
        matrix, vector, alone = matrix_clocks(code), vector_clocks(code), mca(code, arguments.mca, arguments.keep)
        total = max(matrix, vector, alone / arguments.waves)
        share = 100 * matrix / total
        of_counted = share * (1 - arguments.uncounted / arguments.products)
        estimated += 1
        below += of_counted < arguments.at_least
        count = lambda pattern: sum(1 for line in code if re.match(pattern, line))
        print(f"{name}\n  instructions {len(code)}: {count('v_mfma')} matrix, {count('v_exp')} exponentials, "
              f"{count('v_') - count('v_mfma') - count('v_exp')} other vector, {count('ds_')} shared memory, "
              f"{count('global_')} global, {count('s_')} scalar\n"
              f"  clocks of a turn: matrix {matrix}, vector {vector}, a wave alone (llvm-mca) {alone:.0f}; "
              f"{arguments.waves} waves: {total:.0f}, {share:.0f} % of the matrix peak"
              + (f" ({of_counted:.0f} % without {arguments.uncounted} products)" if arguments.uncounted else ""))
    if estimated == 0:
        sys.exit("no kernel of that name has matrix instructions in a loop")
    if below:
        sys.exit(f"{below} of {estimated} kernels are below {arguments.at_least:g} % of the matrix peak")


if __name__ == "__main__":
    main()
