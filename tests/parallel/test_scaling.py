"""Properties of the simulated scaling to many workers."""

from __future__ import annotations

import pytest

from benchmarks.scaling import MODELS, NETWORKS, Network, ring, step_time, tree, two_bit

MODEL, NET = MODELS[0], NETWORKS[0]


def test_single_worker_has_no_communication_time():
    assert step_time(MODEL, 1, NET) == pytest.approx(MODEL.forward + MODEL.backward)


def test_perfect_network_has_no_communication_time():
    perfect = Network("perfect", 1e30, 0.0)
    assert step_time(MODEL, 64, perfect) == pytest.approx(step_time(MODEL, 1, perfect))


def test_overlap_and_half_precision_reduce_step_time():
    late = step_time(MODEL, 16, NET, is_early=False)
    early = step_time(MODEL, 16, NET)
    assert early < late
    assert step_time(MODEL, 16, NET, scale=0.5) < early


def test_communication_costs_of_ring_tree_and_two_bit():
    net = Network("simple", 1.0, 0.0)
    assert ring(8, 2, net) == tree(8, 2, net) == 8
    assert ring(8, 4, net) == tree(8, 4, net) == 12
    assert two_bit(8, 2, net) == 0.4
    assert two_bit(8, 4, net) < ring(8, 4, net) / 10
    slow = Network("far", 1e30, 1.0)
    assert (ring(8, 8, slow), tree(8, 8, slow)) == (14, 6)
