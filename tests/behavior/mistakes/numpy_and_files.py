"""Invalid calls with mx.np, conversion and the command line. Each function makes one."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path

import mxnet as mx
from mxnet import nd, np, npx
from mxnet.gluon import nn
from mxnext_cli import main

# -- mx.np -----------------------------------------------------------------------------------------


def np_sum_of_two_shapes():
    np.ones((2, 3)) + np.ones((2, 4))


def np_product_of_shapes_that_do_not_fit():
    np.dot(np.ones((2, 3)), np.ones((2, 3)))


def np_matmul_of_a_number():
    np.matmul(np.ones((2, 3)), 3)


def np_reshape_to_another_size():
    np.ones((2, 3)).reshape(4, 2)


def np_concatenation_of_two_shapes():
    np.concatenate([np.ones((2, 3)), np.ones((2, 4))], axis=0)


def np_stack_of_two_shapes():
    np.stack([np.ones((2, 3)), np.ones((3, 2))])


def np_function_that_does_not_exist():
    np.sofmax(np.ones((2, 3)))


def np_option_that_does_not_exist():
    np.sum(np.ones((2, 3)), dim=1)


def np_and_nd_together():
    np.ones((2, 3)) + nd.ones((2, 3))


def np_index_beyond_the_end():
    np.ones((2, 3))[5]


def np_mean_over_an_absent_axis():
    np.mean(np.ones((2, 3)), axis=3)


def np_einsum_that_does_not_fit():
    np.einsum("ij,jk->ik", np.ones((2, 3)), np.ones((4, 5)))


def np_inverse_of_a_rectangle():
    np.linalg.inv(np.ones((2, 3)))


def np_uneven_split():
    np.split(np.ones((5,)), 2)


def np_item_of_an_array_with_several_elements():
    np.ones((2, 3)).item()


def np_random_of_a_negative_scale():
    np.random.normal(0, -1, size=(2,))


def np_one_hot_without_depth():
    npx.one_hot(np.array([0, 1]))


# -- conversion ------------------------------------------------------------------------------------


def network():
    net = nn.Dense(2, in_units=3, prefix="dense_")
    net.initialize()
    net.hybridize()
    net(nd.ones((1, 3)))
    return net


def conversion_without_shapes():
    mx.convert.convert(network(), to="net.onnx")


def conversion_to_an_unknown_format():
    mx.convert.convert(network(), to="net.tflite", shapes=[(1, 3)])


def conversion_of_another_shape():
    mx.convert.convert(network(), to="onnx", shapes=[(1, 5)])


def conversion_of_a_function():
    mx.convert.convert(lambda x: x, to="onnx", shapes=[(1, 5)])


def missing_onnx_file():
    mx.contrib.onnx.import_model("net.onnx")


def file_that_is_not_an_onnx_file():
    Path("net.onnx").write_bytes(b"not a model of ONNX")
    mx.contrib.onnx.import_model("net.onnx")


def export_without_parameters():
    net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc")
    mx.onnx.export_model(net, {}, [(1, 3)], onnx_file_path="net.onnx")


def quantization_to_an_unknown_type():
    mx.contrib.quantization.quantize_net_v2(network(), "int4", data_shapes=[(1, 3)])


def quantization_without_data():
    mx.contrib.quantization.quantize_net_v2(network(), calib_mode="naive")


# -- the command line ------------------------------------------------------------------------------


class CommandFailed(Exception):
    """What a command wrote before it ended with a code other than 0."""


def mx_command(*arguments: str) -> None:
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
        try:
            code = main(arguments)
        except SystemExit as error:
            code = error.code
    if code:
        raise CommandFailed(f"{said.getvalue().strip()} [exit code {code}]")


def command_that_does_not_exist():
    mx_command("trian", "net")


def missing_model():
    mx_command("summary", "resnet")


def prediction_for_a_missing_image():
    nd.save("net-0000.params", {"arg:fc_weight": nd.ones((2, 3)), "arg:fc_bias": nd.ones((2,))})
    mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc").save("net-symbol.json")
    mx_command("predict", "net", "--input", "cat.jpg")


def conversion_to_an_unknown_target():
    mx_command("convert", "net", "--to", "tflite")


def image_given_as_a_record_file():
    Path("photo.jpg").write_bytes(b"\xff\xd8\xff\xe0 not records")
    mx_command("rec", "info", "photo.jpg")


def records_of_a_missing_folder():
    mx_command("im2rec", "train", "pictures")


def records_of_an_empty_folder():
    Path("pictures").mkdir()
    mx_command("im2rec", "--list", "train", "pictures")


def records_of_a_folder_with_folders():
    Path("pictures/cat").mkdir(parents=True)
    Path("pictures/cat/1.jpg").write_bytes(b"")
    mx_command("im2rec", "--list", "train", "pictures")


def launch_without_a_program():
    mx_command("launch", "-n", "2")


def option_that_does_not_exist():
    mx_command("info", "--verbos", "net.params")


def information_about_a_missing_file():
    mx_command("info", "net.params")


def missing_script():
    mx_command("run", "train.py")
