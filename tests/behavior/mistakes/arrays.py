"""Invalid calls with arrays, indices and gradients. Each function makes one."""

from __future__ import annotations

import numpy as np

import mxnet as mx
from mxnet import autograd, nd

# -- arrays ----------------------------------------------------------------------------------------


def sum_of_two_shapes():
    nd.ones((2, 3)) + nd.ones((2, 4))


def sum_of_two_types():
    nd.ones((2, 3)) + nd.ones((2, 3), dtype="float64")


def sum_with_text():
    nd.ones((2, 3)) + "1"


def missing_gpu():
    nd.ones((2, 3), ctx=mx.gpu(7))


def dot_of_shapes_that_do_not_fit():
    nd.dot(nd.ones((2, 3)), nd.ones((2, 3)))


def batch_dot_of_matrices():
    nd.batch_dot(nd.ones((2, 3)), nd.ones((3, 2)))


def reshape_to_another_size():
    nd.ones((2, 3)).reshape((4, 2))


def concat_of_a_list_along_a_wrong_axis():
    nd.concat(nd.ones((2, 3)), nd.ones((4, 5)), dim=0)


def concat_of_a_list():
    nd.concat([nd.ones((2, 3)), nd.ones((2, 3))], 5)


def stack_of_two_shapes():
    nd.stack(nd.ones((2, 3)), nd.ones((3, 2)))


def split_into_uneven_parts():
    nd.split(nd.ones((2, 5)), num_outputs=2, axis=1)


def broadcast_to_a_shape_that_does_not_fit():
    nd.ones((2, 3)).broadcast_to((4, 3))


def transpose_with_too_few_axes():
    nd.ones((2, 3, 4)).transpose((1, 0))


def sum_over_an_absent_axis():
    nd.ones((2, 3)).sum(axis=2)


def softmax_over_an_absent_axis():
    nd.softmax(nd.ones((2, 3)), axis=5)


def misspelled_function():
    nd.sofmax(nd.ones((2, 3)))


def keyword_of_another_library():
    nd.sum(nd.ones((2, 3)), dim=1)


def misspelled_keyword():
    nd.sum(nd.ones((2, 3)), axes=1, keepdim=True)


def one_hot_without_depth():
    nd.one_hot(nd.array([0, 1]))


def activation_that_does_not_exist():
    nd.Activation(nd.ones((2, 3)), act_type="rellu")


def rows_of_two_lengths():
    nd.array([[1, 2], [3]])


def text_as_array():
    nd.array(["cat", "dog"])


def negative_size():
    nd.zeros((2, -3))


def shape_of_text():
    nd.ones("big")


def unknown_type():
    nd.ones((2, 3), dtype="floot32")


def scalar_of_an_array_with_several_elements():
    nd.ones((2, 3)).asscalar()


def truth_of_an_array_with_several_elements():
    if nd.ones((2, 3)):
        pass


def result_into_another_shape():
    nd.broadcast_add(nd.ones((2, 3)), nd.ones((2, 3)), out=nd.ones((3, 2)))


def list_where_an_array_belongs():
    nd.relu([1.0, -1.0])


def numpy_where_an_array_belongs():
    nd.relu(np.ones((2, 3), "float32"))


def convolution_without_weights():
    nd.Convolution(nd.ones((1, 3, 8, 8)), num_filter=4, kernel=(3, 3))


def dropout_of_more_than_all():
    nd.Dropout(nd.ones((2, 3)), p=1.5)


# -- indices ---------------------------------------------------------------------------------------


def index_beyond_the_end():
    nd.ones((2, 3))[5]


def too_many_indices():
    nd.ones((2, 3))[0, 0, 0]


def index_by_text():
    nd.ones((2, 3))["rows"]


def index_by_a_fraction():
    nd.ones((2, 3))[1.5]


def slice_with_step_zero():
    nd.ones((6,))[::0]


def assignment_of_another_shape():
    x = nd.ones((2, 3))
    x[0] = nd.ones((4,))


def assignment_beyond_the_end():
    x = nd.ones((2, 3))
    x[:, 7] = 1


def slice_axis_without_end():
    nd.slice_axis(nd.ones((2, 3)), axis=4, begin=0, end=1)


def pick_of_another_length():
    nd.pick(nd.ones((2, 3)), nd.array([0, 1, 2]))


def take_beyond_the_end():
    nd.take(nd.ones((2, 3)), nd.array([9]), mode="raise")


def embedding_of_a_negative_size():
    nd.Embedding(nd.array([0, 1]), nd.ones((5, 2)), input_dim=-5, output_dim=2)


# -- gradients -------------------------------------------------------------------------------------


def backward_without_record():
    x = nd.ones((2, 3))
    x.attach_grad()
    (x * 2).backward()


def backward_twice():
    x = nd.ones((2, 3))
    x.attach_grad()
    with autograd.record():
        y = (x * x).sum()
    y.backward()
    y.backward()


def head_gradient_of_another_shape():
    x = nd.ones((2, 3))
    x.attach_grad()
    with autograd.record():
        y = x * x
    y.backward(nd.ones((5,)))


def change_in_place_while_recording():
    x = nd.ones((2, 3))
    x.attach_grad()
    with autograd.record():
        y = x * x
        x += 1
    y.backward()


def gradient_of_an_unmarked_array():
    x, other = nd.ones((2, 3)), nd.ones((2, 3))
    x.attach_grad()
    with autograd.record():
        y = x * 2
    autograd.grad(y, other)


def unknown_gradient_request():
    nd.ones((2, 3)).attach_grad(grad_req="sum")


class Mean(autograd.Function):
    def forward(self, x, y):
        return x + y

    def backward(self, dy):
        return dy / 2


def function_with_too_few_gradients():
    x, y = nd.ones((2,)), nd.ones((2,))
    x.attach_grad()
    with autograd.record():
        z = Mean()(x, y)
    z.backward()
