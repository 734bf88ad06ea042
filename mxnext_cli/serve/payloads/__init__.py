"""Bodies: what clients send becomes arrays, and arrays become what they get.

`json_arrays`, `array_files` and `forms` read one format each, `decoding` chooses among them and
checks what came; `encoding` writes answers, and `open_inference` is a protocol of both.
"""
