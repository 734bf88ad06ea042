"""Let the disk run full at random places of every kind of save."""

from __future__ import annotations

import json
import pathlib
import random
import resource
import sys
import tempfile
import warnings
from collections import Counter

import mxnet as mx
from tests.faults.kills import kinds


def main(seed: int, count: int) -> dict:
    """Fail each kind of save `count` times; return how often the old set stayed whole."""
    warnings.simplefilter("ignore")
    chance, outcomes, wrong = random.Random(seed), Counter(), {}
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    with tempfile.TemporaryDirectory() as folder:
        for name, (save, load) in kinds(folder).items():
            version = 1
            save(version)
            before = {p.name for p in pathlib.Path(folder).iterdir()}
            for _ in range(count):
                limit = int(10 ** chance.uniform(0, 4.3))
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
                try:
                    save(version + 1)
                    version += 1
                    outcome = "saved"
                except mx.MXNetError as error:
                    outcome = "refused" if "Cannot write" in str(error) else "unclear"
                except Exception as error:
                    outcome, wrong[name] = "unexpected", f"{type(error).__name__}: {error}"[:300]
                finally:
                    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
                outcomes[outcome] += 1
                if load() != {version}:
                    outcomes["torn"] += 1
                if {p.name for p in pathlib.Path(folder).iterdir()} != before:
                    outcomes["left behind"] += 1
    return {**outcomes, "wrong": wrong}


if __name__ == "__main__":
    print(json.dumps(main(int(sys.argv[1]), int(sys.argv[2]))))
