"""Blocks of gluon.nn answer, learn, print and name things as those of MXNet 1.9.1 do."""

from __future__ import annotations

import pytest

from tests.gluon.layer_answers import cases, check_answer, check_description, name_of

CASES = cases("nn")


@pytest.mark.parametrize("hybridize", [False, True], ids=["eager", "hybrid"])
@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_outputs_and_gradients_are_those_of_mxnet(case, hybridize):
    check_answer(case, hybridize)


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_printed_form_parameters_and_graph_are_those_of_mxnet(case):
    check_description(case)
