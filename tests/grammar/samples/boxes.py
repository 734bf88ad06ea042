"""Detection: boxes, matching, priors, targets, proposals."""

import numpy as np

from tests.grammar.sampling import each, integers, normal, sample, uniform

_rng = np.random.RandomState(7)


def _boxes(*shape: int, size: float = 0.3) -> np.ndarray:
    centre, half = _rng.uniform(0.2, 0.8, (*shape, 2)), _rng.uniform(0.1, 1, (*shape, 2)) * size
    return np.concatenate([centre - half / 2, centre + half / 2], -1).astype("float32").round(4)


def _scored(*shape: int) -> np.ndarray:
    head = [_rng.randint(-1, 3, (*shape, 1)), _rng.uniform(-0.2, 1, (*shape, 1)).round(3)]
    return np.concatenate([*head, _boxes(*shape, size=0.6)], -1).astype("float32")


_one, _two = _scored(12), _scored(2, 2, 9)
sample("_contrib_box_nms", _one, overlap_thresh=each(0.0, 0.3, 0.7), numeric=False)
sample("_contrib_box_nms", _one, topk=each(0, 3, 50), valid_thresh=each(-1, 0.4, 2), numeric=False)
sample(
    "_contrib_box_nms",
    _two,
    id_index=0,
    background_id=each(-1, 0, 1),
    numeric=False,
    force_suppress=each(False, True),
    overlap_thresh=0.2,
)
sample(
    "_contrib_box_nms",
    _two,
    in_format=each("center", "corner"),
    numeric=False,
    out_format=each("center", "corner"),
    overlap_thresh=0.3,
)
sample("_contrib_box_nms", _one[:, 1:], score_index=0, coord_start=1, numeric=False)
sample("_contrib_box_non_maximum_suppression", _two[0], id_index=0, numeric=False)

_row = {"numeric": False}
sample("_contrib_box_iou", _boxes(3), _boxes(2, 4), format=each("center", "corner"), **_row)
sample("_contrib_box_iou", _boxes(2, 3), _boxes(4), **_row)

sample(
    "_contrib_box_encode",
    integers(-1, 2, 2, 5),
    integers(0, 3, 2, 5),
    _boxes(2, 5),
    _boxes(2, 3),
    normal(4),
    uniform(0.1, 1, 4),
    numeric=False,
)
sample(
    "_contrib_box_decode",
    normal(2, 5, 4),
    _boxes(1, 5),
    std0=0.1,
    std1=0.2,
    std2=0.3,
    std3=0.4,
    clip=each(-1, 0.2),
    format=each("center", "corner"),
    numeric=False,
)
_matches = _rng.permutation(24).reshape(2, 4, 3).astype("float32") / 24
sample(
    "_contrib_bipartite_matching",
    _matches,
    threshold=each(1e-12, 0.4),
    topk=each(-1, 1, 2),
    is_ascend=each(False, True),
    numeric=False,
)
sample("_contrib_bipartite_matching", np.ones((3, 4), "float32"), threshold=0.5, numeric=False)

_map = normal(1, 2, 3, 4)
sample("_contrib_MultiBoxPrior", _map, numeric=False)
sample(
    "_contrib_MultiBoxPrior",
    _map,
    sizes=each((0.5,), (0.5, 0.2, 0.1)),
    numeric=False,
    ratios=each((2.0,), (1, 2, 0.5)),
    clip=each(False, True),
)
sample("_contrib_MultiBoxPrior", _map, steps=(0.3, 0.2), offsets=(0.1, 0.7), numeric=False)


def _labels() -> np.ndarray:
    made = np.full((3, 4, 6), -1, "float32")
    for image, count in enumerate((3, 1, 0)):
        made[image, :count, 0] = _rng.randint(0, 3, count)
        made[image, :count, 1:5] = _boxes(count, size=0.5)
        made[image, :count, 5] = 0.3
    return made


_anchors = _boxes(1, 14, size=0.5)
sample(
    "_contrib_MultiBoxTarget",
    _anchors,
    _labels(),
    normal(3, 4, 14),
    numeric=False,
    negative_mining_ratio=each(-1, 1, 3),
    overlap_threshold=each(0.5, 0.1),
    minimum_negative_samples=each(0, 5),
)
sample(
    "_contrib_MultiBoxTarget",
    _anchors,
    _labels(),
    normal(3, 4, 14),
    ignore_label=-2,
    negative_mining_ratio=2,
    negative_mining_thresh=each(0.4, 0.5),
    numeric=False,
    variances=(0.1, 0.2, 0.3, 0.4),
)
_probs = _rng.uniform(0, 1, (2, 4, 14)).astype("float32")
_probs /= _probs.sum(1, keepdims=True)
sample(
    "_contrib_MultiBoxDetection",
    _probs,
    normal(2, 56),
    _anchors,
    clip=each(True, False),
    threshold=each(0.01, 0.4),
    nms_threshold=each(0.2, 0.5, -1),
    numeric=False,
    force_suppress=each(False, True),
)
sample(
    "_contrib_MultiBoxDetection",
    _probs,
    normal(2, 56),
    _anchors,
    nms_topk=each(1, 5),
    numeric=False,
    background_id=each(0, 1, -1),
    variances=(0.2, 0.1, 0.1, 0.1),
)

_rpn = {
    "scales": (1, 2),
    "ratios": (0.5, 1, 2),
    "feature_stride": 8,
    "rpn_post_nms_top_n": 8,
    "numeric": False,
}
for _name, _images in (("_contrib_Proposal", 1), ("_contrib_MultiProposal", 2)):
    _facts = [[40, 48, 1.0], [32, 40, 1.5]][:_images]
    _scores = _rng.permutation(_images * 12 * 30).reshape(_images, 12, 5, 6) / 800.0
    sample(
        _name,
        _scores.astype("float32"),
        normal(_images, 24, 5, 6, scale=0.2),
        _facts,
        rpn_min_size=each(4, 12),
        threshold=each(0.3, 0.7),
        rpn_pre_nms_top_n=each(20, 1000),
        output_score=True,
        **_rpn,
    )
    sample(
        _name,
        _scores.astype("float32"),
        normal(_images, 24, 5, 6, scale=0.2),
        _facts,
        rpn_min_size=2,
        iou_loss=each(False, True),
        **_rpn,
    )
