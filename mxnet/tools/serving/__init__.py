"""The server behind `mx serve`: bodies to arrays, batches, workers, metrics, HTTP."""
