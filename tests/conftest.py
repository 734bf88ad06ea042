"""What holds for every test."""


def pytest_make_parametrize_id(config, val, argname):
    """Bytes are named by their place: they may hold the time, and workers must agree on names."""
    return argname if isinstance(val, bytes) else None
