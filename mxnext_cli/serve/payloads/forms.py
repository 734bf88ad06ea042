"""Files in a form, as `curl -F image=@cat.jpg` and browsers send them."""

from __future__ import annotations

from typing import Any, NamedTuple

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

MAX_PARTS = 1024
MAX_PART_HEADER = 4096


class BadForm(ValueError):
    """A form that cannot be read; the message says why."""


class Part(NamedTuple):
    """One field of a form."""

    name: str
    kind: str
    content: bytes


class _Collector:
    """Gathers the parts while the parser reports what it sees."""

    def __init__(self) -> None:
        self.parts: list[Part] = []
        self.is_complete = False
        self._headers: dict[bytes, bytes] = {}
        self._field, self._value, self._content = bytearray(), bytearray(), bytearray()

    def callbacks(self) -> Any:
        """Return what the parser calls."""
        return {
            "on_part_begin": self._begin,
            "on_header_field": lambda data, start, end: self._header(self._field, data, start, end),
            "on_header_value": lambda data, start, end: self._header(self._value, data, start, end),
            "on_header_end": self._end_header,
            "on_part_data": self._add,
            "on_part_end": self._end,
            "on_end": self._finish,
        }

    def _begin(self) -> None:
        if len(self.parts) >= MAX_PARTS:
            raise BadForm(f"it has more than {MAX_PARTS} parts")
        self._headers, self._content = {}, bytearray()

    def _header(self, buffer: bytearray, data: bytes, start: int, end: int) -> None:
        buffer += data[start:end]
        if len(buffer) > MAX_PART_HEADER or len(self._headers) > 16:
            raise BadForm("a part has too long a header")

    def _end_header(self) -> None:
        self._headers[bytes(self._field).lower()] = bytes(self._value)
        self._field.clear()
        self._value.clear()

    def _add(self, data: bytes, start: int, end: int) -> None:
        self._content += data[start:end]

    def _end(self) -> None:
        _, options = parse_options_header(self._headers.get(b"content-disposition", b""))
        name = options.get(b"name", b"").decode("utf-8", "replace")
        kind = self._headers.get(b"content-type", b"").decode("latin-1")
        self.parts.append(Part(name, kind, bytes(self._content)))

    def _finish(self) -> None:
        self.is_complete = True


def read_form(body: bytes | bytearray, content_type: str) -> list[Part]:
    """Return the parts of a `multipart/form-data` body."""
    _, options = parse_options_header(content_type.encode("latin-1", "replace"))
    boundary = options.get(b"boundary")
    if not boundary:
        raise BadForm("the content type has no boundary")
    collector = _Collector()
    try:
        parser = MultipartParser(boundary, collector.callbacks())
        parser.write(bytes(body))
        parser.finalize()
    except FormParserError as error:
        raise BadForm(str(error)) from None
    if not collector.is_complete:
        raise BadForm("it ends too early")
    return collector.parts
