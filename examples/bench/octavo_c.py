# SPDX-License-Identifier: Apache-2.0
"""The library of octavo_c.cu through ctypes: building it, loading it, and calls on anything that has data_ptr()."""
import ctypes
import os
import subprocess
from ctypes import POINTER, Structure, byref, c_char_p, c_int32, c_int64, c_void_p

RECIPES = {"tile": 0, "token": 1}
DELTAS = {"matched": 0, "consistent": 1, "stale": 2}
FORWARD, BACKWARD = 0, 1

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
DEFAULT_LIBRARY = os.path.join(ROOT, "build", "bench", "liboctavo_c.so")


class Problem(Structure):
    _fields_ = [(n, c_int64) for n in ("b", "h_q", "h_kv", "s_q", "s_kv", "d", "window_left", "window_right")] + [
        (n, c_int32) for n in ("recipe", "delta", "causal", "payload_inputs", "save_payloads", "o_residual",
                               "deterministic", "reserved")]


class Operand(Structure):
    _fields_ = [(n, c_void_p) for n in ("values", "payload", "scale")]


class ForwardCall(Structure):
    _fields_ = [(n, Operand) for n in ("q", "k", "v")] + [(n, c_void_p) for n in ("o", "o_residual", "lse", "m", "l")]


class BackwardCall(Structure):
    _fields_ = [(n, Operand) for n in ("q", "k", "v", "dout")] + [
        (n, c_void_p) for n in ("o", "o_residual", "m", "l", "dq", "dk", "dv", "delta", "row_sum", "l1")]


class Memory(Structure):
    _fields_ = [("workspace", c_void_p), ("bytes", c_int64), ("stream", c_void_p)]


SIGNATURES = {
    "octavo_c_version": [],
    "octavo_c_unavailable": [],
    "octavo_c_workspace": [POINTER(Problem), c_int32, POINTER(c_int64)],
    "octavo_c_forward": [POINTER(Problem), POINTER(ForwardCall), POINTER(Memory)],
    "octavo_c_backward": [POINTER(Problem), POINTER(BackwardCall), POINTER(Memory)],
    "octavo_c_quantise_workspace": [POINTER(Problem), POINTER(c_int64)],
    "octavo_c_quantise": [POINTER(Problem), c_void_p, POINTER(Memory)],
}


def compile_command(output):
    return ["nvcc", "-std=c++20", "-O3", "-gencode", "arch=compute_90a,code=sm_90a", "-Xcompiler", "-fPIC", "-Xlinker",
            "-s", "-shared", "-I", os.path.join(ROOT, "include"), "-o", output, os.path.join(HERE, "octavo_c.cu")]


class Library:
    """Its functions raise RuntimeError with the library's own sentence."""

    def __init__(self, path=DEFAULT_LIBRARY, say=print):
        if not os.path.exists(path):
            os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
            say(f"{path} is missing; compiling it takes one to two minutes")
            subprocess.run(compile_command(path), check=True)
        self.path = path
        self.c = ctypes.CDLL(os.path.abspath(path))
        for name, arguments in SIGNATURES.items():
            function = getattr(self.c, name)
            function.restype, function.argtypes = c_char_p, arguments
        self.c.octavo_c_struct_bytes.restype, self.c.octavo_c_struct_bytes.argtypes = c_int64, [c_int32]
        for i, structure in enumerate((Problem, Operand, ForwardCall, BackwardCall, Memory)):
            theirs, ours = self.c.octavo_c_struct_bytes(i), ctypes.sizeof(structure)
            if theirs != ours:
                raise RuntimeError(f"{path} is another version: {structure.__name__} has {theirs} bytes, not {ours}")

    def version(self):
        return self.c.octavo_c_version().decode()

    def unavailable(self):
        why = self.c.octavo_c_unavailable()
        return why.decode() if why else None

    def workspace(self, problem, which):
        size = c_int64(0)
        check(self.c.octavo_c_workspace(byref(problem), which, byref(size)))
        return size.value

    def quantise_workspace(self, problem):
        size = c_int64(0)
        check(self.c.octavo_c_quantise_workspace(byref(problem), byref(size)))
        return size.value

    def bind(self, name, problem, call, memory):
        """A function without arguments that makes this call each time: as little work for the host as can be."""
        function = getattr(self.c, name)
        a = byref(problem)
        b = byref(call) if isinstance(call, Structure) else call
        c = byref(memory)

        def run():
            error = function(a, b, c)
            if error is not None:
                check(error)

        return run


def check(error):
    if error is not None:
        raise RuntimeError("octavo: " + error.decode())


def make_problem(b, s, h, d, recipe="tile", delta="matched", causal=False, h_kv=None, s_kv=None, window=(-1, -1),
                 **flags):
    """flags: payload_inputs, save_payloads, o_residual, deterministic."""
    return Problem(b=b, h_q=h, h_kv=h_kv or h, s_q=s, s_kv=s_kv or s, d=d, window_left=window[0],
                   window_right=window[1], recipe=RECIPES[recipe], delta=DELTAS[delta], causal=causal, **flags)
