"""A topic in a file, `pylog archive`: its stored record batches, from which it is restored byte by byte, or read without a broker.

`container` is the file, a tar in frames of zstandard; `document` says what is in it; `exporting`, `restoring` and `checking` write and read it.
docs/archive.md describes the format.
"""
