"""Pooling over regions of interest."""

from tests.grammar.sampling import distinct, each, normal, sample, uniform

_rois = [
    [0, 1.2, 0.7, 6.1, 5.4],
    [1, 0, 0, 11, 9],
    [1, 3.5, 2.5, 3.5, 2.5],
    [0, -3, -2, 4.6, 3.2],
    [1, 6, 5, 20, 30],
    [0, 5, 6, 2, 1],
]
_map = distinct(2, 3, 6, 8)
_grid = each((1, 1), (2, 3), (4, 4))
_scale = each(1.0, 0.5)
sample("ROIPooling", _map, _rois, pooled_size=_grid, spatial_scale=_scale, numeric=False)
sample(
    "_contrib_ROIAlign",
    normal(2, 3, 6, 8),
    _rois,
    pooled_size=_grid,
    spatial_scale=_scale,
    sample_ratio=each(-1, 2),
    numeric=False,
)
sample(
    "_contrib_ROIAlign",
    normal(2, 3, 6, 8),
    _rois[:2] + _rois[3:5],
    pooled_size=_grid,
    spatial_scale=_scale,
    sample_ratio=each(-1, 2),
    aligned=True,
    numeric=False,
)
sample(
    "_contrib_ROIAlign",
    normal(2, 8, 6, 8),
    _rois,
    pooled_size=(2, 2),
    spatial_scale=_scale,
    sample_ratio=each(-1, 2),
    position_sensitive=True,
    numeric=False,
)
_rotated = [
    [0, 3.2, 2.7, 4, 3, 0],
    [1, 4, 3, 5, 2, 30],
    [1, 2, 2, 3, 6, -45],
    [0, 7, 5, 8, 4, 110],
]
sample(
    "_contrib_RROIAlign",
    normal(2, 3, 6, 8),
    _rotated,
    pooled_size=_grid,
    spatial_scale=_scale,
    sampling_ratio=each(-1, 2),
    grad=False,
)
_inside = [[0, 1.2, 0.7, 6.1, 5.4], [1, 0, 0, 7, 5], [1, 3.5, 2.5, 3.5, 2.5], [0, 2, 1, 4, 5]]
for _group in (0, 2, 3):
    _channels = 2 * (_group or 3) ** 2
    sample(
        "_contrib_PSROIPooling",
        normal(2, _channels, 6, 8),
        _inside,
        spatial_scale=_scale,
        output_dim=2,
        pooled_size=3,
        group_size=_group,
        numeric=False,
    )
_free = {"output_dim": 2, "group_size": 2, "pooled_size": 2, "numeric": False}
sample(
    "_contrib_DeformablePSROIPooling",
    normal(2, 8, 6, 8),
    _inside,
    spatial_scale=_scale,
    sample_per_part=each(1, 3),
    no_trans=True,
    **_free,
)
sample(
    "_contrib_DeformablePSROIPooling",
    normal(2, 8, 6, 8),
    _inside,
    uniform(-1, 1, 4, 2, 2, 2),
    spatial_scale=_scale,
    sample_per_part=each(1, 3),
    trans_std=0.1,
    part_size=each(0, 2),
    **_free,
)
sample(
    "_contrib_DeformablePSROIPooling",
    normal(2, 8, 6, 8),
    _inside,
    uniform(-1, 1, 4, 4, 2, 2),
    spatial_scale=0.5,
    sample_per_part=2,
    trans_std=0.2,
    **_free,
)
