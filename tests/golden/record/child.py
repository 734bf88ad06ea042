"""Run recorder functions in a child process, which may crash."""

from __future__ import annotations

import json
import os
import signal


def ask_in_child(questions, answer, seconds, is_quiet=True):
    """Return ``answer(question)`` of each, fewer than asked if the process died or took too long.

    `is_quiet` drops what the process writes to standard error.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        signal.alarm(seconds)
        if is_quiet:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        with os.fdopen(writer, "w") as pipe:
            for question in questions:
                print(json.dumps(answer(question)), file=pipe, flush=True)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as stream:
        answers = [json.loads(line) for line in stream if line.endswith("\n")]
    os.waitpid(child, 0)
    return answers
