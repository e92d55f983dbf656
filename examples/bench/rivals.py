# SPDX-License-Identifier: Apache-2.0
"""Octavo and what it is compared with, each over tensors [b, s, h, d]: objects with forward(), backward() and
results() = (O, dQ, dK, dV)."""
import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

import octavo_c

E4M3 = torch.float8_e4m3fn


class Inputs:
    """q, k, v, dout of BF16."""

    def __init__(self, b, s, h, d, h_kv=None, s_kv=None, mean=0.0, seed=0):
        generator = torch.Generator(device="cuda").manual_seed(seed)

        def normal(s, h, mean):
            x = torch.randn(b, s, h, d, device="cuda", generator=generator)
            return (x + mean).to(torch.bfloat16)

        self.b, self.s, self.h, self.d, self.h_kv, self.s_kv = b, s, h, d, h_kv or h, s_kv or s
        self.q, self.k = normal(s, h, 0), normal(self.s_kv, self.h_kv, 0)
        self.v, self.dout = normal(self.s_kv, self.h_kv, mean), normal(s, h, mean)


class Scratch:
    """Device memory that calls take turns in: workspaces and gradients."""

    def __init__(self):
        self.held = {}

    def bytes(self, name, count):
        if name not in self.held or self.held[name].numel() < count:
            self.held[name] = torch.empty(max(count, 1), dtype=torch.uint8, device="cuda")
        return self.held[name]

    def like(self, name, x):
        return self.bytes(name, x.numel() * x.element_size())[:x.numel() * x.element_size()].view(x.dtype).view(x.shape)


class Octavo:
    """One config on one set of inputs."""

    def __init__(self, library, inputs, recipe, delta="matched", causal=False, window=(-1, -1), o_residual=False,
                 deterministic=False, scratch=None):
        self.library, self.inputs, self.scratch = library, inputs, scratch or Scratch()
        self.options = dict(recipe=recipe, delta=delta, causal=causal, window=window, o_residual=o_residual,
                            deterministic=deterministic)
        x, statistic = inputs, lambda: torch.full((inputs.b, inputs.h, inputs.s), float("nan"), device="cuda")
        self.m, self.l, self.lse = statistic(), statistic(), statistic()
        self.o = torch.full_like(x.q, float("nan"))
        self.o_residual = torch.full_like(x.q, float("nan")) if o_residual else None
        self.dq, self.dk, self.dv = (self.scratch.like("d" + n, t) for n, t in (("q", x.q), ("k", x.k), ("v", x.v)))
        self.payloads = {}
        self.use_values()

    def use_values(self):
        """Calls start from BF16."""
        self._bind()
        return self

    def use_payloads(self):
        """Calls start from payloads with scales, which are made here once: the forward and the backward save them."""
        if not self.payloads:
            x = self.inputs
            for name in ("q", "k", "v", "dout"):
                t = getattr(x, name)
                b, s, h, _ = t.shape
                blocks = s if self.options["recipe"] == "token" else (s + 127) // 128
                self.payloads[name] = (torch.zeros(t.shape, dtype=torch.uint8, device="cuda"),
                                       torch.zeros(b, h, blocks, dtype=torch.uint8, device="cuda"))
            self._bind(save_payloads=True)
            self.forward()
            self.backward()
        self._bind(payload_inputs=True)
        return self

    def share_payloads(self, other):
        """Calls start from the payloads of another config of the same recipe on the same inputs."""
        self.payloads = other.payloads
        self.use_payloads()
        self.forward()  # O and statistics of this config
        return self

    def dequantised(self, name):
        """What a payload stands for, in FP32."""
        payload, scale = self.payloads[name]
        per_token = torch.exp2(scale.float() - 127)
        if self.options["recipe"] == "tile":
            per_token = per_token.repeat_interleave(128, dim=2)[:, :, :payload.shape[1]]
        return payload.view(E4M3).float() * per_token.transpose(1, 2)[..., None]

    def poison(self):
        for t in (self.o, self.m, self.l, self.lse, self.dq, self.dk, self.dv):
            t.fill_(float("nan"))

    def results(self):
        self.forward()
        self.backward()
        return self.o, self.dq, self.dk, self.dv

    def _bind(self, **flags):
        x = self.inputs
        problem = octavo_c.make_problem(x.b, x.s, x.h, x.d, h_kv=x.h_kv, s_kv=x.s_kv, **self.options, **flags)

        def operand(name):
            payload, scale = self.payloads.get(name, (None, None))
            return octavo_c.Operand(getattr(x, name).data_ptr(), payload.data_ptr() if payload is not None else None,
                                    scale.data_ptr() if scale is not None else None)

        residual = self.o_residual.data_ptr() if self.o_residual is not None else None
        operands = [operand(n) for n in ("q", "k", "v", "dout")]
        o, m, l = self.o.data_ptr(), self.m.data_ptr(), self.l.data_ptr()
        forward = octavo_c.ForwardCall(*operands[:3], o, residual, self.lse.data_ptr(), m, l)
        backward = octavo_c.BackwardCall(*operands, o, residual, m, l, self.dq.data_ptr(), self.dk.data_ptr(),
                                         self.dv.data_ptr(), None, None, None)
        stream = torch.cuda.current_stream().cuda_stream

        def memory(which):
            size = self.library.workspace(problem, which)
            workspace = self.scratch.bytes("workspace", size)
            self.kept.append(workspace)  # a larger one may take its place in the scratch memory
            return octavo_c.Memory(workspace.data_ptr(), workspace.numel(), stream)

        self.kept = []
        forward_memory, backward_memory = memory(octavo_c.FORWARD), memory(octavo_c.BACKWARD)
        self.forward = self.library.bind("octavo_c_forward", problem, forward, forward_memory)
        self.backward = self.library.bind("octavo_c_backward", problem, backward, backward_memory)


class Quantise:
    """The quantise kernel alone, over one tensor: reads BF16, writes both images."""

    def __init__(self, library, x, recipe, scratch):
        b, s, h, d = x.shape
        self.bytes = x.numel() * (x.element_size() + 2)
        problem = octavo_c.make_problem(b, s, h, d, recipe)
        self.workspace = scratch.bytes("quantise", library.quantise_workspace(problem))
        memory = octavo_c.Memory(self.workspace.data_ptr(), self.workspace.numel(),
                                 torch.cuda.current_stream().cuda_stream)
        self.forward = library.bind("octavo_c_quantise", problem, x.data_ptr(), memory)
        self.kept = x


class TorchSdpa:
    """torch's attention in BF16 by one of its backends: "cudnn" or "flash". The log-sum-exp is kept, as in training."""

    def __init__(self, backend, inputs, causal):
        heads_first = lambda t: t.transpose(1, 2)
        q, k, v, self.dout = (heads_first(t) for t in (inputs.q, inputs.k, inputs.v, inputs.dout))
        scale = inputs.d ** -0.5
        aten = torch.ops.aten
        if backend == "cudnn":
            kind, operator = SDPBackend.CUDNN_ATTENTION, aten._scaled_dot_product_cudnn_attention
            self.forward = lambda: operator(q, k, v, None, True, 0.0, causal, False, scale=scale)
        else:
            kind, operator = SDPBackend.FLASH_ATTENTION, aten._scaled_dot_product_flash_attention
            self.forward = lambda: operator(q, k, v, 0.0, causal, False, scale=scale)
        self.leaves = tuple(t.detach().requires_grad_() for t in (q, k, v))
        with sdpa_kernel(kind):
            self.o = F.scaled_dot_product_attention(*self.leaves, is_causal=causal, scale=scale)

    def backward(self):
        return torch.autograd.grad(self.o, self.leaves, self.dout, retain_graph=True)

    def results(self):
        return tuple(t.detach().transpose(1, 2) for t in (self.o, *self.backward()))
