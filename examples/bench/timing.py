# SPDX-License-Identifier: Apache-2.0
"""Device time of a call, and how long a whole program may take."""
import faulthandler
import statistics
import time

import torch


class Clock:
    """What is left of a budget of seconds. A call that hangs ends the program, with a trace, after `patience`."""

    def __init__(self, budget, patience=60):
        self.started, self.budget, self.patience = time.monotonic(), budget, patience
        self.watch()

    def spent(self):
        return time.monotonic() - self.started

    def over(self):
        return self.spent() > self.budget

    def watch(self):
        faulthandler.dump_traceback_later(self.patience, exit=True)


def median_ms(calls, warm_ms, measured_ms, least=10, most=200):
    """Milliseconds from the end of one launch to the end of the next, the median. `calls` do the same on different
    buffers and take turns, so that none finds its inputs in the cache."""
    event = lambda: torch.cuda.Event(enable_timing=True)
    for call in calls:
        call()
    begin, end = event(), event()
    begin.record()
    calls[0]()
    end.record()
    torch.cuda.synchronize()
    one_ms = max(begin.elapsed_time(end), 0.005)

    warm = max(3, int(warm_ms / one_ms))
    host = time.perf_counter()
    for i in range(warm):
        calls[i % len(calls)]()
    host_ms = (time.perf_counter() - host) / warm * 1e3

    together = 1 if one_ms > 0.1 else int(0.3 / one_ms)  # launches between events, which cost about a microsecond
    count = max(least, min(most, int(measured_ms / one_ms / together)))
    events = [event() for _ in range(count + 1)]
    # The device waits until the host is so far ahead that it stays ahead: about 1.8 million cycles are a millisecond.
    behind_ms = max(0.0, 1.5 * host_ms + 0.02 - one_ms) * together * count
    torch.cuda._sleep(int(1.8e6 * (1 + min(behind_ms, 50))))
    events[0].record()
    for i in range(count):
        for j in range(together):
            calls[(i * together + j) % len(calls)]()
        events[i + 1].record()
    torch.cuda.synchronize()
    return statistics.median(a.elapsed_time(b) for a, b in zip(events, events[1:])) / together


def interleaved(items, rounds, warm_ms, measured_ms, clock, failed):
    """Rounds over all items: {name: [median of each round]}. items: {name: calls}. One that fails is left out and
    reported as failed(name, exception), which answers whether to go on."""
    medians = {name: [] for name in items}
    broken = set()
    for _ in range(rounds):
        for name, calls in items.items():
            if name in broken or clock.over():
                continue
            clock.watch()
            try:
                medians[name].append(median_ms(calls, warm_ms, measured_ms))
            except Exception as problem:
                broken.add(name)
                if not failed(name, problem):
                    return {name: ms for name, ms in medians.items() if ms and name not in broken}
    return {name: ms for name, ms in medians.items() if ms and name not in broken}
