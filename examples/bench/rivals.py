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
        """Takes payloads, O and statistics of another config of the same recipe on the same inputs."""
        self.payloads, self.o, self.m, self.l = other.payloads, other.o, other.m, other.l
        return self.use_payloads()

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
            # Kept, because a larger workspace may take the place of this one while calls still use it.
            self.workspace = self.scratch.bytes("workspace", size)
            return octavo_c.Memory(self.workspace.data_ptr(), self.workspace.numel(), stream), self.workspace

        (forward_memory, a), (backward_memory, b) = memory(octavo_c.FORWARD), memory(octavo_c.BACKWARD)
        self.kept = (a, b)
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


class CudnnFp8:
    """cuDNN's FP8 attention through nvidia-cudnn-frontend: E4M3 with one scale a tensor, outputs in E4M3 as well (on
    Hopper it has no others). Scales are calibrated here; quantisation is outside of the calls."""

    largest = 448.0
    handle = None
    graphs = {}

    def __init__(self, inputs, causal, like=None, backward=True):
        """like: another one, whose scales are taken."""
        import cudnn
        self.cudnn = cudnn
        if CudnnFp8.handle is None:
            CudnnFp8.handle = cudnn.create_handle()
        cudnn.set_stream(handle=CudnnFp8.handle, stream=torch.cuda.current_stream().cuda_stream)
        x = inputs
        self.shape, self.causal, self.scale = (x.b, x.s, x.h, x.d), causal, x.d ** -0.5
        number = lambda value=1.0: torch.full((1, 1, 1, 1), value, device="cuda")
        names = ("s", "o", "dP", "dQ", "dK", "dV")
        self.scales = like.scales if like else {n: number() for n in names}
        self.descales = like.descales if like else {n: number() for n in names}
        self.amax = {n: number() for n in names}
        self.data = {}
        for name, t in (("q", x.q), ("k", x.k), ("v", x.v), ("dO", x.dout)):
            amax = t.abs().max().float().clamp_min(1e-12)
            self.data[name] = (t.float() * (self.largest / amax)).to(E4M3)
            self.data["descale_" + name] = (amax / self.largest).reshape(1, 1, 1, 1)
        for name in ("o", "dQ", "dK", "dV"):
            self.data[name] = torch.zeros(x.q.shape, dtype=E4M3, device="cuda")
        self.data["stats"] = torch.empty(x.b, x.h, x.s, 1, device="cuda")

        if like is None:
            self._set("s", 1.0)  # P is at most 1
        self.forward = self._bind(self._forward_graph)
        self.forward()
        if like is None:
            self._set("o", self.amax["o"].item())
            self.forward()
        if backward:
            self.backward = self._bind(self._backward_graph)
            self.backward()
            if like is None:
                for known in (("dP", "dV"), ("dQ", "dK")):  # dQ and dK are made of the rounded dP
                    for n in known:
                        self._set(n, self.amax[n].item())
                    self.backward()

    def results(self):
        value = lambda n: self.data[n].float() * self.descales[n]
        return tuple(value(n) for n in ("o", "dQ", "dK", "dV"))

    def _set(self, name, amax):
        amax = amax if 0 < amax < float("inf") else 1.0
        self.scales[name].fill_(self.largest / amax)
        self.descales[name].fill_(amax / self.largest)

    def _graph(self):
        kinds = self.cudnn.data_type
        return self.cudnn.pygraph(io_data_type=kinds.FP8_E4M3, intermediate_data_type=kinds.FLOAT,
                                  compute_data_type=kinds.FLOAT, handle=CudnnFp8.handle)

    def _wide(self, graph, names):
        b, s, h, d = self.shape
        return {n: graph.tensor(dim=[b, h, s, d], stride=[s * h * d, d, h * d, 1],
                                data_type=self.cudnn.data_type.FP8_E4M3, name=n) for n in names}

    def _numbers(self, graph, names):
        return {n: graph.tensor(dim=[1, 1, 1, 1], stride=[1, 1, 1, 1], data_type=self.cudnn.data_type.FLOAT, name=n)
                for n in names}

    def _statistics(self, tensor):
        b, s, h, _ = self.shape
        return tensor.set_output(True).set_dim([b, h, s, 1]).set_stride([h * s, s, 1, 1]).set_data_type(
            self.cudnn.data_type.FLOAT)

    def _outputs(self, wide, numbers):
        b, s, h, d = self.shape
        for tensor in wide:
            tensor.set_output(True).set_dim([b, h, s, d]).set_stride([s * h * d, d, h * d, 1]).set_data_type(
                self.cudnn.data_type.FP8_E4M3)
        for tensor in numbers:
            tensor.set_output(True).set_dim([1, 1, 1, 1]).set_stride([1, 1, 1, 1]).set_data_type(
                self.cudnn.data_type.FLOAT)

    def _built(self, graph):
        graph.validate()
        graph.build_operation_graph()
        graph.create_execution_plans([self.cudnn.heur_mode.A, self.cudnn.heur_mode.FALLBACK])
        graph.check_support()
        graph.build_plans()
        return graph

    def _forward_graph(self):
        graph = self._graph()
        at = {**self._wide(graph, ("q", "k", "v")), **self._numbers(graph, (
            "descale_q", "descale_k", "descale_v", "descale_s", "scale_s", "scale_o"))}
        o, stats, amax_s, amax_o = graph.sdpa_fp8(**at, generate_stats=True, attn_scale=self.scale,
                                                  use_causal_mask=self.causal)
        self._outputs([o], [amax_s, amax_o])
        self._statistics(stats)
        at.update(o=o, stats=stats, amax_s=amax_s, amax_o=amax_o)
        return self._built(graph), at

    def _backward_graph(self):
        graph = self._graph()
        b, s, h, _ = self.shape
        at = {**self._wide(graph, ("q", "k", "v", "o", "dO")), **self._numbers(graph, (
            "descale_q", "descale_k", "descale_v", "descale_o", "descale_dO", "descale_s", "descale_dP", "scale_s",
            "scale_dQ", "scale_dK", "scale_dV", "scale_dP"))}
        at["stats"] = graph.tensor(dim=[b, h, s, 1], stride=[h * s, s, 1, 1], data_type=self.cudnn.data_type.FLOAT,
                                   name="stats")
        names = ("dQ", "dK", "dV", "amax_dQ", "amax_dK", "amax_dV", "amax_dP")
        made = dict(zip(names, graph.sdpa_fp8_backward(**at, attn_scale=self.scale, use_causal_mask=self.causal)))
        self._outputs([made[n] for n in names[:3]], [made[n] for n in names[3:]])
        at.update(made)
        return self._built(graph), at

    def _bind(self, build):
        """A call with this object's memory. Graphs are built once for a shape."""
        key = (build.__name__, self.shape, self.causal)
        if key not in CudnnFp8.graphs:
            CudnnFp8.graphs[key] = build()
        graph, at = CudnnFp8.graphs[key]

        def memory(name):
            if name in self.data:
                return self.data[name]
            kind, of = name.split("_")
            return {"scale": self.scales, "descale": self.descales, "amax": self.amax}[kind][of]

        pointers = {tensor.get_uid(): memory(name).data_ptr() for name, tensor in at.items()}
        workspace = torch.empty(max(graph.get_workspace_size(), 1), dtype=torch.uint8, device="cuda")

        def run(_kept=(workspace, self.data, self.scales, self.descales, self.amax)):
            graph.execute(pointers, workspace.data_ptr(), handle=CudnnFp8.handle)

        return run
