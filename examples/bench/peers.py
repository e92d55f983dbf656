#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Octavo's Hopper backend beside torch's attention (cuDNN and FlashAttention-2, BF16) and cuDNN's FP8 attention.

    python3 examples/bench/peers.py --quick                    the table of TFLOP/s and ratios
    python3 examples/bench/peers.py --accuracy                 errors against float64
    python3 examples/bench/peers.py --check                    is it right at all, do bits repeat

See README.md beside this for what is counted and how time is taken."""
import argparse
import gc
import json
import os
import sys
import time

import octavo_c

TOKENS = 16384
SHAPES = "128:4k 128:16k 128:8k 128:1k 64:16k 64:4k"

# FlashAttention-3 is not run here. Its figures are those of cuDNN BF16 in this run times their ratio on one H200
# (2026-11-30, FlashAttention-3 at 0251105a, cuDNN 9.19.0, sustained, 16,384 tokens). TFLOP/s of that run:
# (d, seqlen, causal): forward FA3 FP8, FA3 BF16, cuDNN BF16; backward FA3 BF16, cuDNN BF16.
FA3 = {
    (128, 1024, True): (516, 465, 427, 347, 308), (128, 1024, False): (739, 594, 574, 453, 422),
    (128, 4096, True): (807, 604, 512, 509, 449), (128, 4096, False): (860, 641, 571, 545, 510),
    (128, 8192, True): (856, 612, 547, 552, 492), (128, 8192, False): (909, 655, 593, 564, 530),
    (128, 16384, True): (900, 634, 571, 587, 522), (128, 16384, False): (910, 656, 613, 579, 540),
    (64, 4096, True): (532, 444, 410, 462, 369), (64, 4096, False): (609, 477, 442, 500, 424),
    (64, 16384, True): (638, 506, 431, 521, 427), (64, 16384, False): (675, 517, 437, 526, 448),
}

FORWARD = ("tile", "token", "tile.bf16", "token.bf16", "cudnn8", "cudnn16", "flash16", "fa3.8*", "fa3.16*")
BACKWARD = ("tile.matched", "tile.consistent", "token.matched", "token.consistent", "tile.matched.bf16",
            "tile.matched.det", "cudnn8", "cudnn16", "flash16", "fa3.16*")
WINDOW = 1024  # keys before a row's own, at 16k


class Shape:
    def __init__(self, d, s, causal):
        self.d, self.s, self.causal = d, s, causal
        self.h, self.b = 2048 // d, TOKENS // s
        self.key = (d, s, causal)

    def __str__(self):
        return f"d{self.d} {self.s // 1024}k {'causal' if self.causal else 'full'}"

    def flops(self, item):
        return 4.0 * TOKENS * self.h * self.s * self.d * (0.5 if self.causal else 1) * (2.5 if "bwd" in item else 1)


def shapes_of(text, masks):
    found = []
    for word in text.replace(",", " ").split():
        d, s = word.split(":")
        s = int(s[:-1]) * 1024 if s.endswith("k") else int(s)
        if TOKENS % s or 2048 % int(d):
            raise SystemExit(f"{word}: the sequence must divide {TOKENS} tokens and d must divide 2048")
        found += [Shape(int(d), s, mask == "causal") for mask in masks.replace(",", " ").split()]
    return found


def items_of(shape, library, sets, clock, wanted, failed):
    """{name: calls} of everything that is timed on a shape; each call of a list works on another set of inputs.
    failed(name, exception) answers whether to go on."""
    from rivals import Inputs, Octavo, Scratch, TorchSdpa

    inputs = [Inputs(shape.b, shape.s, shape.h, shape.d, seed=i) for i in range(sets)]
    scratch, made = Scratch(), {}

    def once(key, make):
        if key not in made:
            try:
                made[key] = make()
            except Exception as problem:
                made[key] = problem
        if isinstance(made[key], Exception):
            raise made[key]
        return made[key]

    def ours(recipe, delta="matched", payloads=True, **options):
        options = {"causal": shape.causal, **options}

        def make():
            all_sets = [Octavo(library, x, recipe, delta, scratch=scratch, **options) for x in inputs]
            plain = delta == "matched" and options == {"causal": shape.causal}
            for i, one in enumerate(all_sets):
                if not payloads:
                    one.forward()
                elif plain:
                    one.use_payloads()
                else:
                    one.share_payloads(ours(recipe)[i])
            return all_sets

        return once((recipe, delta, payloads, str(options)), make)

    def torch_sdpa(backend):
        return once(backend, lambda: [TorchSdpa(backend, x, shape.causal) for x in inputs])

    def cudnn_fp8():
        def make():
            from cudnn_fp8 import CudnnFp8
            first = CudnnFp8(inputs[0], shape.causal)
            return [first] + [CudnnFp8(x, shape.causal, like=first) for x in inputs[1:]]

        return once("cudnn8", make)

    window = dict(causal=False, window=(WINDOW, 0))
    builders = {
        "fwd.tile": lambda: ours("tile"),
        "fwd.token": lambda: ours("token"),
        "fwd.tile.bf16": lambda: ours("tile", payloads=False),
        "fwd.token.bf16": lambda: ours("token", payloads=False),
        "fwd.cudnn8": cudnn_fp8,
        "fwd.cudnn16": lambda: torch_sdpa("cudnn"),
        "fwd.flash16": lambda: torch_sdpa("flash"),
        "bwd.tile.matched": lambda: ours("tile"),
        "bwd.tile.consistent": lambda: ours("tile", "consistent"),
        "bwd.token.matched": lambda: ours("token"),
        "bwd.token.consistent": lambda: ours("token", "consistent"),
        "bwd.tile.matched.bf16": lambda: ours("tile", payloads=False),
        "bwd.tile.matched.det": lambda: ours("tile", deterministic=True),
        "bwd.cudnn8": lambda: [one.with_backward() for one in cudnn_fp8()],
        "bwd.cudnn16": lambda: torch_sdpa("cudnn"),
        "bwd.flash16": lambda: torch_sdpa("flash"),
    }
    if shape.d != 128:
        del builders["bwd.cudnn8"]  # cuDNN has none on Hopper
    if shape.s == 16384 and not shape.causal:
        builders["fwd.tile.window"] = lambda: ours("tile", **window)
        builders["bwd.tile.matched.window"] = lambda: ours("tile", **window)

    items = {}
    for name, build in builders.items():
        if not wanted(name) or clock.over():
            continue
        clock.watch()
        try:
            items[name] = [one.backward if name.startswith("bwd") else one.forward for one in build()]
        except Exception as problem:
            if not failed(name, problem):
                return {}
    return items


def with_fa3(shape, tflops):
    """The same figures with those derived for FlashAttention-3."""
    if shape.key in FA3:
        fp8, bf16, cudnn, bf16_backward, cudnn_backward = FA3[shape.key]
        for name, of, ratio in (("fwd.fa3.8*", "fwd.cudnn16", fp8 / cudnn),
                                ("fwd.fa3.16*", "fwd.cudnn16", bf16 / cudnn),
                                ("bwd.fa3.16*", "bwd.cudnn16", bf16_backward / cudnn_backward)):
            if of in tflops:
                tflops[name] = tflops[of] * ratio
    return tflops


def touched_tiles(s, left, tile=128):
    """Which part of all tiles of 128 x 128 a window {left, 0} touches."""
    count = s // tile
    return sum(i - max(0, tile * i - left) // tile + 1 for i in range(count)) / count ** 2


def ratios_of(shape, tflops):
    """[(name, ratio, least, most)]: what is asked for, and within which bounds (None: none)."""
    t = tflops.get
    long = shape.s >= 4096 if shape.d == 128 else shape.s >= 16384
    narrow = shape.d != 128
    bar_consistent, bar_matched = (1.0, .75) if narrow else (1.15, .85)

    def best(*names):
        """The fastest of these, and a remark on those that were not measured."""
        missing = [n[4:] for n in names if not t(n)]
        return max((t(n) for n in names if t(n)), default=None), f" (without {', '.join(missing)})" if missing else ""

    fp8, but_forward = best("fwd.cudnn8", "fwd.fa3.8*")
    backward, but_backward = best(*([] if narrow else ["bwd.cudnn8"]), "bwd.fa3.16*")
    found = []
    for name, a, b, bar in (
            ("fwd" + but_forward, t("fwd.tile"), fp8, 1.0 if long else None),
            ("fwd tok/tile", t("fwd.token"), t("fwd.tile"), .9),
            ("fwd bf16-in", t("fwd.tile.bf16"), t("fwd.tile"), None),
            ("consistent" + but_backward, t("bwd.tile.consistent"), backward, bar_consistent if long else None),
            ("matched" + but_backward, t("bwd.tile.matched"), backward, bar_matched if long else None),
            ("bwd tok/tile", t("bwd.token.matched"), t("bwd.tile.matched"), .8),
            ("bwd bf16-in", t("bwd.tile.matched.bf16"), t("bwd.tile.matched"), None),
            ("det", t("bwd.tile.matched.det"), t("bwd.tile.matched"), .85)):
        if a and b:
            found.append((name, a / b, bar, None))
    for name, windowed, full in (("fwd window", "fwd.tile.window", "fwd.tile"),
                                 ("bwd window", "bwd.tile.matched.window", "bwd.tile.matched")):
        if t(windowed) and t(full):  # figures of a window count the full FLOPs: the ratio is that of times
            found.append((name, t(full) / t(windowed) / touched_tiles(shape.s, WINDOW), None, 1.5))
    return found


def verdict(ratio, least, most):
    if least is None and most is None:
        return f"{ratio:.2f}"
    if least is not None and ratio < least:
        return f"{ratio:.2f} <{least:g}"
    return f"{ratio:.2f} >{most:g}" if most is not None and ratio > most else f"{ratio:.2f} ok"


def print_table(title, names, prefix, rows, say):
    names = [n for n in names if any(prefix + n in figures for _, figures in rows)]
    if not names:
        return
    say(title)
    say(f"{'':16}" + "".join(f"{n:>{max(8, len(n) + 1)}}" for n in names))
    for shape, figures in rows:
        cells = (f"{figures[prefix + n]:.0f}" if prefix + n in figures else "-" for n in names)
        say(f"{str(shape):16}" + "".join(f"{c:>{max(8, len(n) + 1)}}" for n, c in zip(names, cells)))


def print_ratios(rows, say):
    say("ratios to the faster of cuDNN FP8 and FA3 (FP8 forward, BF16 backward), or as named; < or > a bar: missed")
    for shape, figures in rows:
        found = ratios_of(shape, figures)
        if found:
            say(f"{str(shape):16} " + ", ".join(f"{n} {verdict(*r)}" for n, *r in found))


def quantise_table(library, options, clock, wanted, failed, say):
    """The quantise kernel over one tensor of 16k tokens, h 16, d 128, against a copy on the same device."""
    import torch
    from rivals import Inputs, Quantise, Scratch
    from timing import interleaved

    names = [n for n in ("quantise.tile", "quantise.token") if wanted(n)]
    if not names:
        return {}
    inputs = [Inputs(1, TOKENS, 16, 128, seed=i) for i in range(2)]
    tensors = [t for x in inputs for t in (x.q, x.k, x.v)]
    scratch, items, moved = Scratch(), {}, {}
    source = torch.randn(1 << 28, device="cuda")
    target = torch.empty_like(source)
    items["copy"], moved["copy"] = [lambda: target.copy_(source)], 2 * source.numel() * 4
    for name in names:
        try:
            calls = [Quantise(library, t, name.split(".")[1], scratch) for t in tensors]
            items[name], moved[name] = [c.forward for c in calls], calls[0].bytes
        except Exception as problem:
            if not failed(name, problem):
                return {}
    ms = interleaved(items, options.rounds, options.warm, options.measure, clock, failed)
    rates = {n: moved[n] / median(m) * 1e-6 for n, m in ms.items()}
    for name in names:
        if name in rates and "copy" in rates:
            say(f"{name}: {rates[name]:.0f} GB/s read + written, {rates[name] / rates['copy']:.2f} of a copy's "
                f"{rates['copy']:.0f} (bar .75); {median(ms[name]) * 1e3:.1f} us for one tensor")
    return {"gb_per_s": rates, "rounds_ms": ms}


def median(values):
    values = sorted(values)
    middle = len(values) // 2
    return values[middle] if len(values) % 2 else (values[middle - 1] + values[middle]) / 2


def timing_table(library, shapes, options, clock, wanted, say, save):
    """Answers whether the device outlived it."""
    import torch
    from accuracy import alive, first_line
    from timing import interleaved

    results, rows, told, lost = [], [], set(), False

    def failed(name, problem):
        nonlocal lost
        line = f"  {name} failed: {first_line(problem)}"
        if line not in told:
            say(line)
        told.add(line)
        if not alive():
            lost = True
            say("the device no longer answers: nothing more can be measured by this process")
        return not lost

    save(quantise=quantise_table(library, options, clock, wanted, failed, say))
    for shape in shapes:
        if lost:
            break
        if clock.over():
            say(f"{shape}: skipped, the budget is spent")
            continue
        began = clock.spent()
        items = items_of(shape, library, options.sets, clock, wanted, failed)
        built = clock.spent()
        ms = interleaved(items, options.rounds, options.warm, options.measure, clock, failed)
        figures = with_fa3(shape, {name: shape.flops(name) / median(of) * 1e-9 for name, of in ms.items()})
        rows.append((shape, figures))
        for prefix in ("fwd.", "bwd."):
            line = "  ".join(f"{n[4:]} {v:.0f}" for n, v in figures.items() if n.startswith(prefix))
            if line:
                say(f"{str(shape):15} {prefix}  {line}")
        say(f"{'':15} {built - began:.1f} s to prepare, {clock.spent() - built:.1f} s to measure")
        ratios = [dict(zip(("name", "ratio", "least", "most"), r)) for r in ratios_of(shape, figures)]
        results.append({"d": shape.d, "seqlen": shape.s, "causal": shape.causal, "b": shape.b, "h": shape.h,
                        "rounds_ms": ms, "tflops": figures, "ratios": ratios})
        save(timing=results)
        del items
        gc.collect()
        if not lost:
            torch.cuda.empty_cache()
    print_table("\nforward, TFLOP/s (from payloads; .bf16: from BF16, quantised inside; *: derived, not run)", FORWARD,
                "fwd.", rows, say)
    print_table("\nbackward, TFLOP/s (2.5 times the forward's FLOPs)", BACKWARD, "bwd.", rows, say)
    say("")
    print_ratios(rows, say)
    return not lost


def dry_run(library, shapes, wanted, say):
    """What can be seen without a device: the library's interface, workspaces, refusals."""
    say(f"{library.path}: {library.version()}; {library.unavailable() or 'a device is there'}")
    for shape in shapes:
        sizes = []
        for recipe in octavo_c.RECIPES:
            for delta in ("matched", "consistent"):
                problem = octavo_c.make_problem(shape.b, shape.s, shape.h, shape.d, recipe, delta, shape.causal,
                                                payload_inputs=True)
                mib = [library.workspace(problem, which) / 2 ** 20 for which in (octavo_c.FORWARD, octavo_c.BACKWARD)]
                sizes.append(f"{recipe} {delta} {mib[0]:.0f} / {mib[1]:.0f}")
        say(f"{str(shape):15} workspace MiB, forward / backward: " + ", ".join(sizes))
    problem = octavo_c.make_problem(1, TOKENS, 16, 128)
    say(f"quantise workspace: {library.quantise_workspace(problem) / 2 ** 20:.0f} MiB")
    for name, bad, call in (
            ("octavo_c_forward", octavo_c.make_problem(1, 128, 1, 128), octavo_c.ForwardCall()),
            ("octavo_c_backward", octavo_c.make_problem(1, 128, 1, 128), octavo_c.BackwardCall()),
            ("octavo_c_forward", octavo_c.make_problem(1, 128, 3, 128, h_kv=2), octavo_c.ForwardCall())):
        try:
            library.bind(name, bad, call, octavo_c.Memory())()
            raise SystemExit(f"{name} took arguments that it must refuse")
        except RuntimeError as refusal:
            say(f"refused as it should be: {refusal}")
    say("dry run: done, nothing was measured")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", action="store_true", help="time (the default, where nothing else is asked for)")
    parser.add_argument("--accuracy", action="store_true", help="errors against float64, ours and the peers'")
    parser.add_argument("--check", action="store_true", help="ours against float64 on small shapes; bits repeat")
    parser.add_argument("--dry-run", action="store_true", help="load the library and call what needs no device")
    parser.add_argument("--library", default=octavo_c.DEFAULT_LIBRARY, help="liboctavo_c.so; built if it is missing")
    parser.add_argument("--shapes", default=SHAPES, help=f"d:seqlen ... (default: {SHAPES})")
    parser.add_argument("--masks", default="causal full")
    parser.add_argument("--only", default="", help="names or parts of names of items, by commas: fwd.tile,cudnn")
    parser.add_argument("--rounds", type=int, help="interleaved rounds over all items (3; with --quick 2)")
    parser.add_argument("--measure", type=float, help="ms to measure an item in a round (120; with --quick 50)")
    parser.add_argument("--warm", type=float, help="ms to warm up an item in a round (40; with --quick 20)")
    parser.add_argument("--sets", type=int, default=3, help="sets of inputs that calls rotate over")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--budget", type=float, default=540, help="seconds after which what remains is skipped")
    parser.add_argument("--json", help="file for all figures, written as they come")
    options = parser.parse_args()
    for name, quick, full in (("rounds", 2, 3), ("measure", 50, 120), ("warm", 20, 40)):
        if getattr(options, name) is None:
            setattr(options, name, quick if options.quick else full)

    say = lambda line: print(line, flush=True)
    parts = [p for p in options.only.split(",") if p]
    wanted = lambda name: not parts or any(p in name for p in parts)
    shapes = shapes_of(options.shapes, options.masks)
    library = octavo_c.Library(options.library, say)
    if options.dry_run:
        return dry_run(library, shapes, wanted, say)

    why = library.unavailable()
    if why:
        say(f"{why}. Nothing to measure here; --dry-run shows what can be seen without a device.")
        return 77
    import torch

    from timing import Clock

    clock = Clock(options.budget)
    report = {"when": time.strftime("%Y-%m-%d %H:%M:%S"), "device": torch.cuda.get_device_name(),
              "torch": torch.__version__, "cudnn": torch.backends.cudnn.version(), "cuda": torch.version.cuda,
              "library": library.version(), "arguments": vars(options)}
    say("{device}, torch {torch}, cuDNN {cudnn}, CUDA {cuda}; {library}".format(**report))

    def save(**what):
        report.update(what)
        if options.json:
            with open(options.json + ".part", "w") as file:
                json.dump(report, file, indent=1, default=str)
            os.replace(options.json + ".part", options.json)

    ok = True
    if options.check:
        from accuracy import check
        found, ok = check(library, clock, wanted, say)
        save(check=found)
    if options.accuracy:
        from accuracy import accuracy_table
        save(accuracy=accuracy_table(library, clock, wanted, say))
    if options.table or not (options.check or options.accuracy):
        ok &= timing_table(library, shapes, options, clock, wanted, say, save)
    say(f"{clock.spent():.0f} s in all")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
