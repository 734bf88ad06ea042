"""Optimizer states between configurations: precision, aggregation, files, learning rates."""

from __future__ import annotations

import tempfile

import mxnet as mx
from mxnet import autograd, gluon, nd
from tests.behavior.combinations import error_of, fill, ramp


def _updated(updater, weights, steps=2, together=False):
    for step in range(steps):
        grads = [(ramp(w.shape, step) * 2).astype(w.dtype) for w in weights]
        if together:
            updater(list(range(len(weights))), grads, weights)
        else:
            for i, (grad, weight) in enumerate(zip(grads, weights)):  # noqa: B905
                updater(i, grad, weight)
    return weights


def _weights(dtype="float32"):
    return [nd.ones((2, 3)).astype(dtype), ramp((4,), 1).astype(dtype)]


def _moved(first, second, dtype="float32", first_together=False, second_together=False):
    """Return the weights after steps by two updaters, the second with the first's states."""
    weights = _weights(dtype)
    one, two = map(mx.optimizer.get_updater, (first, second))
    _updated(one, weights, together=first_together)
    two.set_states(one.get_states())
    return _updated(two, weights, together=second_together)


def _sgd(**options):
    return mx.optimizer.SGD(learning_rate=0.1, **options)


def states_of_float32_between_precisions():
    full, mixed = _sgd(momentum=0.9), _sgd(momentum=0.9, multi_precision=True)
    return [_moved(full, mixed), _moved(mixed, full)]


def states_of_float16_with_copies():
    options = {"momentum": 0.9, "multi_precision": True}
    return _moved(_sgd(**options), _sgd(**options), "float16", second_together=True)


def states_of_float16_without_momentum_lose_their_copies():
    return _moved(_sgd(multi_precision=True), _sgd(), "float16")


def states_of_float16_with_momentum_do_not_fit():
    first, second = _sgd(momentum=0.9, multi_precision=True), _sgd(momentum=0.9)
    return error_of(lambda: _moved(first, second, "float16")) != "raises nothing"


def states_between_single_and_aggregated_updates():
    results = []
    for order in ((False, True), (True, False), (True, True)):
        results.append(_moved(_sgd(momentum=0.9), _sgd(momentum=0.9), "float32", *order))
    return results


def states_of_adam_between_updaters():
    adam = mx.optimizer.Adam
    return _moved(adam(learning_rate=0.1), adam(learning_rate=0.1))


def states_with_their_optimizer_keep_the_count():
    weights = _weights()
    one = mx.optimizer.get_updater(mx.optimizer.Adam(learning_rate=0.1))
    _updated(one, weights)
    two = mx.optimizer.get_updater(mx.optimizer.Adam(learning_rate=0.5))
    two.set_states(one.get_states(dump_optimizer=True))
    return [_updated(two, weights), two.optimizer.lr, two.optimizer.num_update]


def _trained_network(multi_precision=False, dtype="float32"):
    network = gluon.nn.Dense(2, in_units=3, prefix="dense_")
    network.initialize()
    fill(network.collect_params())
    network.cast(dtype)
    options = {"learning_rate": 0.1, "momentum": 0.9, "multi_precision": multi_precision}
    return network, gluon.Trainer(network.collect_params(), "sgd", options)


def _step(network, trainer, x):
    with autograd.record():
        loss = (network(x) ** 2).sum()
    loss.backward()
    trainer.step(2)


def trainer_states_from_a_file_after_hybridize():
    network, trainer = _trained_network()
    for _ in range(2):
        _step(network, trainer, ramp((2, 3)))
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/trainer.states"
        trainer.save_states(path)
        other, second = _trained_network()
        for name, parameter in other.collect_params().items():
            parameter.set_data(network.collect_params()[name].data())
        other.hybridize()
        second.load_states(path)
    for each, its_trainer in ((network, trainer), (other, second)):
        _step(each, its_trainer, ramp((2, 3)))
    return [network.weight.data(), other.weight.data()]


def learning_rate_set_between_steps():
    network, trainer = _trained_network()
    rates = []
    for rate in (0.1, 0.5, 0.01):
        trainer.set_learning_rate(rate)
        _step(network, trainer, ramp((2, 3)))
        rates.append(trainer.learning_rate)
    return [rates, network.weight.data()]


def multipliers_of_parameters_with_decay():
    network, _ = _trained_network()
    network.weight.lr_mult = 0.5
    network.bias.wd_mult = 2.0
    trainer = gluon.Trainer(network.collect_params(), "adam", {"learning_rate": 0.1, "wd": 0.1})
    for _ in range(2):
        _step(network, trainer, ramp((2, 3)))
    return [network.weight.data(), network.bias.data()]


def scheduler_with_warmup_in_a_trainer():
    network, _ = _trained_network()
    scheduler = mx.lr_scheduler.MultiFactorScheduler(
        [2, 3], 0.5, base_lr=0.2, warmup_steps=1, warmup_begin_lr=0.05
    )
    options = {"lr_scheduler": scheduler, "momentum": 0.9}
    trainer = gluon.Trainer(network.collect_params(), "nag", options)
    rates = []
    for _ in range(4):
        _step(network, trainer, ramp((2, 3)))
        rates.append(trainer.learning_rate)
    return [rates, network.weight.data()]


def clipped_gradients_before_a_step():
    network, trainer = _trained_network()
    with autograd.record():
        loss = (network(ramp((2, 3)) * 10) ** 2).sum()
    loss.backward()
    grads = [p.grad() for p in network.collect_params().values()]
    norm = gluon.utils.clip_global_norm(grads, 0.5)
    trainer.step(1)
    return [float(norm), network.weight.data()]


def allreduce_and_update_apart():
    network = gluon.nn.Dense(2, in_units=3)
    network.initialize()
    fill(network.collect_params())
    trainer = gluon.Trainer(
        network.collect_params(), "sgd", {"learning_rate": 0.1}, update_on_kvstore=False
    )
    with autograd.record():
        loss = (network(ramp((2, 3))) ** 2).sum()
    loss.backward()
    trainer.allreduce_grads()
    network.weight.grad()[:] = 1
    trainer.update(1)
    return [network.weight.data(), network.bias.data()]


def stale_gradients_are_refused_or_ignored():
    network, trainer = _trained_network()
    _step(network, trainer, ramp((2, 3)))
    before = network.weight.data().copy()
    refused = error_of(lambda: trainer.step(1))
    trainer.step(1, ignore_stale_grad=True)
    return [refused, (network.weight.data() - before).abs().sum()]
