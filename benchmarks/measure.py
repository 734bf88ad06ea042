"""One side's process: reads cases as JSON lines, answers with the seconds of one run each."""

import json
import os
import sys
import time
import timeit
import warnings


def main():
    """Measure each request {name, setup, statement, number}; set-ups are kept between rounds."""
    warnings.simplefilter("ignore")
    by_processor = os.environ.get("BENCHMARK_CLOCK") == "processor"
    clock = time.process_time if by_processor else time.perf_counter
    timers, spaces = {}, {}
    for line in sys.stdin:
        request = json.loads(line)
        name = request["name"]
        try:
            if name not in timers:
                space = spaces[name] = {}
                exec(request["setup"], space)
                timers[name] = timeit.Timer(request["statement"], timer=clock, globals=space)
                if not request.get("evaluates"):
                    timers[name].timeit(1)
            if request.get("evaluates"):
                seconds = eval(request["statement"], spaces[name])
            else:
                seconds = timers[name].timeit(request["number"]) / request["number"]
            answer = {"seconds": seconds}
        except Exception as error:
            answer = {"error": type(error).__name__ + ": " + str(error)[:200]}
        if request.get("last"):
            timers.pop(name, None)
            spaces.pop(name, None)
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


main()
