"""Typical programs with symbols and executors."""

import mxnet as mx

data = mx.sym.Variable("data")
conv = mx.sym.Convolution(data=data, kernel=(3, 3), num_filter=8, name="conv")
bn = mx.sym.BatchNorm(conv, fix_gamma=False, name="bn")
act = mx.sym.Activation(bn, act_type="relu", name="relu")
pool = mx.symbol.Pooling(act, pool_type="max", kernel=(2, 2), stride=(2, 2))
net = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(pool.flatten(), num_hidden=10), name="softmax")
arg_shapes, out_shapes, aux_shapes = net.infer_shape(data=(1, 3, 8, 8))
print(net.list_arguments(), net.list_auxiliary_states(), out_shapes)
executor = net.simple_bind(mx.cpu(), data=(1, 3, 8, 8))
executor.forward(is_train=True)
executor.backward()
print(executor.outputs[0].asnumpy(), executor.grad_dict["conv_weight"])
print((conv * 2 + 1).get_internals().list_outputs(), mx.sym.Group([conv, act]))
