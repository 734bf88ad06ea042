"""Deformable convolutions."""

from tests.grammar.sampling import normal, sample, uniform

for _kernel, _stride, _dilate, _pad, _out in (
    ((3, 3), (1, 1), (1, 1), (1, 1), (5, 6)),
    ((3, 2), (2, 1), (1, 2), (0, 1), (2, 6)),
    ((1, 1), (1, 1), (1, 1), (0, 0), (5, 6)),
):
    _points = _kernel[0] * _kernel[1]
    for _groups, _moving in ((1, 1), (2, 1), (1, 2), (2, 4)):
        for _reach in (0.4, 2.0):
            _data = normal(2, 4, 5, 6)
            _offset = uniform(-_reach, _reach, 2, 2 * _points * _moving, *_out)
            _weight = normal(6, 4 // _groups, *_kernel)
            _attrs = {
                "kernel": _kernel,
                "stride": _stride,
                "dilate": _dilate,
                "pad": _pad,
                "num_filter": 6,
                "num_group": _groups,
                "num_deformable_group": _moving,
                "numeric": False,
                "rtol": 1e-3,
                "atol": 1e-4,
            }
            sample("_contrib_DeformableConvolution", _data, _offset, _weight, normal(6), **_attrs)
sample(
    "_contrib_DeformableConvolution",
    normal(1, 2, 3, 3),
    uniform(-1, 1, 1, 8, 2, 2),
    normal(2, 2, 2, 2),
    kernel=(2, 2),
    num_filter=2,
    no_bias=True,
    numeric=False,
    rtol=1e-3,
)
