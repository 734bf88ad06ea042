"""The profiler behind `mx.profiler`."""
