"""Loggers that print MXNet's colored headers."""

from __future__ import annotations

import logging
import warnings

CRITICAL = logging.CRITICAL
ERROR = logging.ERROR
WARNING = logging.WARNING
INFO = logging.INFO
DEBUG = logging.DEBUG
NOTSET = logging.NOTSET

_RED, _GREEN, _BLUE, _PLAIN = "\x1b[31m", "\x1b[32m", "\x1b[34m", "\x1b[0m"


class _Formatter(logging.Formatter):
    """``I0102 15:04:05 1234 file.py:function:7] message``, with the header in color."""

    def __init__(self) -> None:
        super().__init__(datefmt="%m%d %H:%M:%S")

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of one record; red from WARNING up, green from INFO, blue below."""
        color = _BLUE if record.levelno < INFO else _GREEN if record.levelno < WARNING else _RED
        self._style._fmt = (
            f"{color}{record.levelname[0]}%(asctime)s %(process)d "
            f"%(pathname)s:%(funcName)s:%(lineno)d]{_PLAIN} %(message)s"
        )
        return super().format(record)


def get_logger(
    name: str | None = None,
    filename: str | None = None,
    filemode: str | None = None,
    level: int = WARNING,
) -> logging.Logger:
    """Return a logger that writes to a file, or in color to the standard error.

    The first call for a name sets its handler and level; without a name the root logger
    is returned as it is.

    Parameters
    ----------
    name
        Name of the logger; None means the root logger.
    filename
        File to write to; by default the standard error.
    filemode
        Mode of the file: ``'a'`` to append (the default), ``'w'`` to overwrite.
    level
        Minimum level.

    >>> get_logger("training", level=INFO).level == INFO
    True
    """
    logger = logging.getLogger(name)
    if name is None or getattr(logger, "_mxnet_ready", False):
        return logger
    if filename:
        handler: logging.Handler = logging.FileHandler(filename, filemode or "a")
    else:
        handler = logging.StreamHandler()
        handler.setFormatter(_Formatter())
    logger.addHandler(handler)
    logger.setLevel(level)
    vars(logger)["_mxnet_ready"] = True
    return logger


def getLogger(
    name: str | None = None,
    filename: str | None = None,
    filemode: str | None = None,
    level: int = WARNING,
) -> logging.Logger:
    """Return a logger, as `get_logger` does; the old spelling.

    Parameters
    ----------
    name
        Name of the logger; None means the root logger.
    filename
        File to write to; by default the standard error.
    filemode
        Mode of the file: ``'a'`` to append (the default), ``'w'`` to overwrite.
    level
        Minimum level.

    >>> import warnings
    >>> warnings.simplefilter("ignore")
    >>> mx.log.getLogger("old spelling").name
    'old spelling'
    """
    warnings.warn(
        "getLogger is deprecated, use get_logger instead.", DeprecationWarning, stacklevel=2
    )
    return get_logger(name, filename, filemode, level)
