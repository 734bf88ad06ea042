"""One side's process: reads cases as JSON lines, answers with the seconds of one run each."""

import json
import sys
import timeit
import warnings


def main():
    """Measure each request {name, setup, statement, number}; set-ups are kept between rounds."""
    warnings.simplefilter("ignore")
    timers = {}
    for line in sys.stdin:
        request = json.loads(line)
        name = request["name"]
        try:
            if name not in timers:
                space = {}
                exec(request["setup"], space)
                timers[name] = timeit.Timer(request["statement"], globals=space)
                timers[name].timeit(1)
            answer = {"seconds": timers[name].timeit(request["number"]) / request["number"]}
        except Exception as error:
            answer = {"error": type(error).__name__ + ": " + str(error)[:200]}
        if request.get("last"):
            timers.pop(name, None)
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


main()
