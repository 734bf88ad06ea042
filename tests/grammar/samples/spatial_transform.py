"""Resizing and sampling."""

from tests.grammar.sampling import each, normal, sample, uniform

sample("_contrib_AdaptiveAvgPooling2D", normal(2, 3, 5, 7))
sample("_contrib_AdaptiveAvgPooling2D", normal(2, 3, 5, 7), output_size=each(1, 3, (2, 4), (9, 8)))

_map = normal(2, 2, 4, 5)
_align = each(True, False)
sample("_contrib_BilinearResize2D", _map, height=7, width=3, align_corners=_align)
sample("_contrib_BilinearResize2D", _map, height=1, width=1, align_corners=_align)
sample("_contrib_BilinearResize2D", _map, height=4, width=5, align_corners=_align)
sample(
    "_contrib_BilinearResize2D",
    _map,
    scale_height=2.5,
    scale_width=0.5,
    align_corners=_align,
    mode=each("size", "odd_scale"),
)
sample(
    "_contrib_BilinearResize2D",
    _map,
    mode=each("to_even_down", "to_even_up", "to_odd_down", "to_odd_up"),
)
sample("_contrib_BilinearResize2D", _map, normal(2, 2, 6, 3), mode="like", align_corners=_align)

sample("UpSampling", _map, scale=each(1, 2, 3), sample_type="nearest", num_args=1)
sample(
    "UpSampling",
    _map,
    normal(2, 2, 8, 10),
    normal(2, 2, 4, 5),
    scale=2,
    sample_type="nearest",
    num_args=3,
    multi_input_mode=each("concat", "sum"),
)
for _scale in (2, 3, 4):
    _kernel = 2 * _scale - _scale % 2
    sample(
        "UpSampling",
        _map,
        normal(2, 1, _kernel, _kernel),
        scale=_scale,
        num_filter=2,
        sample_type="bilinear",
        num_args=2,
    )

sample("BilinearSampler", _map, uniform(-0.95, 0.95, 2, 2, 3, 4))
sample("BilinearSampler", _map, uniform(-1.5, 1.5, 2, 2, 3, 4), numeric=False)
sample("GridGenerator", normal(2, 6), transform_type="affine", target_shape=each((3, 4), (5, 2)))
sample("GridGenerator", normal(2, 2, 3, 4), transform_type="warp")
_kinds = {"transform_type": "affine", "sampler_type": "bilinear"}
_near = [[0.8, 0.1, 0.05, -0.1, 0.7, 0.1], [0.5, 0.2, 0.1, 0.1, 0.6, -0.2]]
sample("SpatialTransformer", _map, _near, target_shape=each((3, 4), (6, 5), (4, 5)), **_kinds)
sample("SpatialTransformer", _map, normal(2, 6), target_shape=(3, 4), numeric=False, **_kinds)
