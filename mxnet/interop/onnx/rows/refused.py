"""Reasons why operators are not exported, and alternatives."""

from __future__ import annotations

from ..builder import refuse

OUTSIDE = "Compute it outside of the model."
TORCH = "A torch program can have it: mx convert MODEL --to torch."

refuse(
    *("CTCLoss", "_contrib_hawkesll"),
    why="is a loss of training: export the network without it, by its output.",
)
refuse(
    *("_contrib_MultiBoxTarget", "_contrib_bipartite_matching"),
    why="makes the targets of a loss, for training: export the network without it.",
)
refuse(
    *("_image_random_brightness", "_image_random_color_jitter", "_image_random_contrast"),
    *("_image_random_flip_left_right", "_image_random_flip_top_bottom", "_image_random_hue"),
    *("_image_random_lighting", "_image_random_saturation"),
    why="draws random numbers to change its data in training. Export the model without it.",
)
refuse(
    "_contrib_calibrate_entropy",
    why="is a step of calibration, not of a prediction. Export the model without it.",
)
refuse(
    *("_linalg_gelqf", "_linalg_inverse", "_linalg_potrf", "_linalg_potri", "_linalg_syevd"),
    *("_linalg_trsm", "_npi_cholesky", "_npi_eig", "_npi_eigh", "_npi_eigvals", "_npi_eigvalsh"),
    *("_npi_pinv", "_npi_pinv_scalar_rcond", "_npi_solve", "_npi_svd", "_npi_tensorinv"),
    "_npi_tensorsolve",
    why=f"takes matrices apart, for which ONNX has no operator. {TORCH}",
)
refuse(
    *("gamma", "gammaln", "_random_pdf_dirichlet", "_random_pdf_gamma", "_random_pdf_poisson"),
    *("_random_pdf_generalized_negative_binomial", "_random_pdf_negative_binomial"),
    why=f"needs the gamma function, which ONNX does not have. {TORCH}",
)
refuse(
    *("_contrib_quantized_batch_norm", "_contrib_quantized_embedding", "_contrib_quantized_rnn"),
    why="is an 8-bit layer that ONNX does not have. Leave this layer in float32 when quantizing.",
)
refuse(
    *("_npi_bincount", "_npi_insert_tensor"),
    why=f"gives an array whose size depends on values. {OUTSIDE}",
)
refuse("_npi_share_memory", why="asks where arrays lie in memory, which differs elsewhere.")
refuse(
    "_contrib_DeformablePSROIPooling",
    why="has no ONNX form: ONNX's RoiAlign neither moves its bins nor reads channels by position.",
)
