# SPDX-License-Identifier: Apache-2.0
"""cuDNN's FP8 attention through nvidia-cudnn-frontend: E4M3 with one FP32 scale a tensor, outputs in E4M3 as well (on
Hopper it has no others)."""
import cudnn

FP8, FP32 = cudnn.data_type.FP8_E4M3, cudnn.data_type.FLOAT


class Graph:
    """A graph and its tensors by name. shape: (b, s, h, d), stored as [b, s, h, d]; cuDNN calls it [b, h, s, d]."""

    def __init__(self, shape, causal, where):
        """where: the arguments that say for which device, handle=... or device_property=..."""
        b, s, h, d = shape
        self.wide = dict(dim=[b, h, s, d], stride=[s * h * d, d, h * d, 1])
        self.row = dict(dim=[b, h, s, 1], stride=[h * s, s, 1, 1])
        self.one = dict(dim=[1, 1, 1, 1], stride=[1, 1, 1, 1])
        self.options = dict(attn_scale=d ** -0.5, use_causal_mask=causal)
        self.graph = cudnn.pygraph(io_data_type=FP8, intermediate_data_type=FP32, compute_data_type=FP32, **where)
        self.tensors = {}

    def _take(self, layout, kind, names):
        taken = {n: self.graph.tensor(**layout, data_type=kind, name=n) for n in names.split()}
        self.tensors.update(taken)
        return taken

    def _make(self, layout, kind, **made):
        for tensor in made.values():
            tensor.set_output(True).set_dim(layout["dim"]).set_stride(layout["stride"]).set_data_type(kind)
        self.tensors.update(made)

    def _build(self):
        self.graph.validate()
        self.graph.build_operation_graph()
        self.graph.create_execution_plans([cudnn.heur_mode.A, cudnn.heur_mode.FALLBACK])
        self.graph.check_support()
        self.graph.build_plans()
        return self

    def forward(self):
        taken = self._take(self.wide, FP8, "q k v")
        taken |= self._take(self.one, FP32, "descale_q descale_k descale_v descale_s scale_s scale_o")
        o, stats, amax_s, amax_o = self.graph.sdpa_fp8(**taken, **self.options, generate_stats=True)
        self._make(self.wide, FP8, o=o)
        self._make(self.row, FP32, stats=stats)
        self._make(self.one, FP32, amax_s=amax_s, amax_o=amax_o)
        return self._build()

    def backward(self):
        taken = self._take(self.wide, FP8, "q k v o dO")
        taken |= self._take(self.row, FP32, "stats")
        taken |= self._take(self.one, FP32, "descale_q descale_k descale_v descale_o descale_dO descale_s descale_dP")
        taken |= self._take(self.one, FP32, "scale_s scale_dQ scale_dK scale_dV scale_dP")
        dq, dk, dv, amax_dq, amax_dk, amax_dv, amax_dp = self.graph.sdpa_fp8_backward(**taken, **self.options)
        self._make(self.wide, FP8, dQ=dq, dK=dk, dV=dv)
        self._make(self.one, FP32, amax_dQ=amax_dq, amax_dK=amax_dk, amax_dV=amax_dv, amax_dP=amax_dp)
        return self._build()


class CudnnFp8:
    """Both passes on one set of inputs. Scales are calibrated here and quantisation is done here, outside of the calls
    that are timed."""

    largest = 448.0
    handle, graphs = None, {}

    def __init__(self, inputs, causal, like=None):
        """The forward is ready. like: another one, whose calibrated scales are taken."""
        import torch
        self.torch, self.calibrates, self.backward = torch, like is None, None
        if CudnnFp8.handle is None:
            CudnnFp8.handle = cudnn.create_handle()
        cudnn.set_stream(handle=CudnnFp8.handle, stream=torch.cuda.current_stream().cuda_stream)
        self.shape, self.causal = (inputs.b, inputs.s, inputs.h, inputs.d), causal
        number = lambda: torch.ones(1, 1, 1, 1, device="cuda")
        self.memory = {}
        for name in ("s", "o", "dP", "dQ", "dK", "dV"):
            self.memory["amax_" + name] = number()
            for kind in ("scale_", "descale_"):
                self.memory[kind + name] = like.memory[kind + name] if like else number()
        for name, values in (("q", inputs.q), ("k", inputs.k), ("v", inputs.v), ("dO", inputs.dout)):
            amax = values.abs().max().float().clamp_min(1e-12)
            self.memory[name] = (values.float() * (self.largest / amax)).to(torch.float8_e4m3fn)
            self.memory["descale_" + name] = (amax / self.largest).reshape(1, 1, 1, 1)
        for name in ("o", "dQ", "dK", "dV"):
            self.memory[name] = torch.empty_like(self.memory["q"])
        self.memory["stats"] = torch.empty(inputs.b, inputs.h, inputs.s, 1, device="cuda")

        if self.calibrates:
            self._set_scale("s", 1.0)  # P is at most 1
        self.forward = self._bind("forward")
        self.forward()
        if self.calibrates:  # a scale is known once what it scales has been computed
            self._calibrate("o")
            self.forward()

    def with_backward(self):
        if self.backward is None:
            backward = self._bind("backward")
            backward()
            if self.calibrates:
                self._calibrate("dP", "dV")
                backward()
                self._calibrate("dQ", "dK")  # they are made of the rounded dP
                backward()
            self.backward = backward
        return self

    def results(self):
        self.forward()
        self.with_backward().backward()
        return tuple(self.memory[n].float() * self.memory["descale_" + n] for n in ("o", "dQ", "dK", "dV"))

    def _calibrate(self, *names):
        for name in names:
            amax = self.memory["amax_" + name].item()
            self._set_scale(name, amax if 0 < amax < float("inf") else 1.0)

    def _set_scale(self, name, amax):
        self.memory["scale_" + name].fill_(self.largest / amax)
        self.memory["descale_" + name].fill_(amax / self.largest)

    def _bind(self, name):
        """A call with this object's memory. A graph is built once for a shape."""
        key = (name, self.shape, self.causal)
        if key not in CudnnFp8.graphs:
            CudnnFp8.graphs[key] = getattr(Graph(self.shape, self.causal, {"handle": CudnnFp8.handle}), name)()
        built, handle = CudnnFp8.graphs[key], CudnnFp8.handle
        pointers = {tensor.get_uid(): self.memory[n].data_ptr() for n, tensor in built.tensors.items()}
        workspace = self.torch.empty(max(built.graph.get_workspace_size(), 1), dtype=self.torch.uint8, device="cuda")
        graph, scratch = built.graph, workspace.data_ptr()
        kept = (workspace, self.memory)

        def run(_kept=kept):
            graph.execute(pointers, scratch, handle=handle)

        return run
