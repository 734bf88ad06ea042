"""What workers run in the tests; every function runs in processes of its own."""

from __future__ import annotations

import pathlib

import mxnet as mx
import mxnet.distributed as hvd
from mxnet import nd
from tests.distributed import store_stories as stores
from tests.distributed import training_stories as training

ROOT = pathlib.Path(__file__).parents[2]


def run_all():
    """Run all stories that share one job of two workers."""
    hvd.init()
    for story in (
        stores.compressed_sums_follow_mxnets_arithmetic,
        stores.half_precision_sums,
        stores.every_name_sums,
        training.trainers_equal_one_process,
        training.trainers_update_row_sparse_parameters,
        training.modules_equal_one_process,
        training.compressed_training_follows_mxnets_arithmetic,
        training.samplers_split_the_data,
        training.gradients_that_leave_early_equal_one_process,
        training.sparse_gradients_equal_one_process,
        training.synchronized_batch_norm_equals_the_joined_batch,
        training.horovod_programs_run,
        training.metrics_are_summed,
        training.estimator_equals_one_process,
        stores.the_learning_rate_reaches_the_optimizer,
        stores.states_are_saved_and_loaded,
        stores.asynchronous_pushes_are_not_lost,
    ):
        story()
        print(story.__name__, flush=True)


def run_some():
    """Run stories that need no second worker."""
    hvd.init()
    stores.every_name_sums()
    training.trainers_equal_one_process()
    training.metrics_are_summed()
    stores.the_learning_rate_reaches_the_optimizer()
    stores.asynchronous_pushes_are_not_lost()
    print("done")


def run_compressed():
    """Run the story of 2-bit sums."""
    hvd.init()
    stores.compressed_sums_follow_mxnets_arithmetic()
    print("done")


def train_the_example():
    """Run the example; its last line holds the accuracy."""
    import runpy
    import sys

    sys.argv = ["train_digits.py", "--epochs", "2"]
    runpy.run_path(str(ROOT / "examples" / "distributed" / "train_digits.py"), run_name="__main__")


def the_program_may_start_torch_itself():
    """Use a process group that the program has made."""
    import os

    import torch

    rank, size = (int(os.environ.pop(name)) for name in ("RANK", "WORLD_SIZE"))
    address = f"tcp://{os.environ.pop('MASTER_ADDR')}:{os.environ.pop('MASTER_PORT')}"
    torch.distributed.init_process_group("gloo", init_method=address, rank=rank, world_size=size)
    store = mx.kvstore.create("dist_sync")
    store.init("w", nd.zeros(2))
    store.push("w", nd.ones(2))
    out = nd.zeros(2)
    store.pull("w", out=out)
    print(store.rank, out.asnumpy().tolist())
    torch.distributed.destroy_process_group()


def launch(arguments):
    """Run the launcher and end with its status."""
    from mxnet.launch import main

    raise SystemExit(main(arguments))
