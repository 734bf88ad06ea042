"""One side's process: reads cases as JSON lines, answers with the seconds of one run each."""

import json
import os
import sys
import time
import timeit
import warnings


def prepare_device(setup):
    """Make a GPU the default device of a program, if asked to; return what waits for it."""
    if os.environ.get("BENCHMARK_DEVICE", "cpu") == "cpu":
        return lambda: None
    if "mxnet" in setup:
        import mxnet as mx

        mx.Context.default_ctx = mx.gpu(0)
        return mx.nd.waitall
    import torch

    from mxnet import accelerator, context

    torch.set_default_device(context.torch_device(context.gpu(0)))
    return accelerator.synchronize_all


def main():
    """Measure each request {name, setup, statement, number}; set-ups are kept between rounds."""
    warnings.simplefilter("ignore")
    by_processor = os.environ.get("BENCHMARK_CLOCK") == "processor"
    clock = time.process_time if by_processor else time.perf_counter
    timers, spaces, waits = {}, {}, {}
    for line in sys.stdin:
        request = json.loads(line)
        name = request["name"]
        try:
            if name not in timers:
                space = spaces[name] = {}
                waits[name] = prepare_device(request["setup"])
                exec(request["setup"], space)
                timers[name] = timeit.Timer(request["statement"], timer=clock, globals=space)
                if not request.get("evaluates"):
                    timers[name].timeit(1)
            if request.get("evaluates"):
                seconds = eval(request["statement"], spaces[name])
            else:
                waits[name]()
                start = clock()
                timers[name].timeit(request["number"])
                waits[name]()  # a GPU works on while Python goes ahead
                seconds = (clock() - start) / request["number"]
            answer = {"seconds": seconds}
        except Exception as error:
            answer = {"error": type(error).__name__ + ": " + str(error)[:200]}
        if request.get("last"):
            timers.pop(name, None)
            spaces.pop(name, None)
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


main()
