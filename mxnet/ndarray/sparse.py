"""`mx.nd.sparse`: row_sparse and csr arrays."""
