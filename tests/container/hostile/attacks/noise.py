"""Inside a leg: output that would act on a terminal, run in a browser, or break a parser."""

from __future__ import annotations

import os

NOISE: dict[str, bytes] = {
    "title": b"\x1b]0;OWNED\x07",
    "clipboard": b"\x1b]52;c;T1dORUQ=\x07",
    "link": b"\x1b]8;;http://192.0.2.1/\x1b\\OWNED\x1b]8;;\x1b\\",
    "clear": b"\x1b[2J\x1b[H\x1b[31;1mOWNED",
    "device": b"\x1bP+q544e\x1b\\\x1b[c\x1b[6n",
    "c1": "\x9b31mOWNED\x9d0;OWNED\x9c".encode(),
    "raw c1": b"\x9b31mOWNED",
    "bidi": "\u202eDENWO\u202c\u2066OWNED\u2069".encode(),
    "separators": "OWNED\u2028OWNED\u2029OWNED\x85OWNED".encode(),
    "return": b"failed\rpassed\x08\x08\x7f\x0b\x0c",
    "html": b"<script>OWNED()</script><img src=x onerror=OWNED()>",
    "xml": b"]]><!DOCTYPE x [<!ENTITY y SYSTEM 'file:///etc/passwd'>]>&y;",
    "workflow": b"\n::error file=x::OWNED\n::set-output name=x::OWNED\n",
    "invalid": b"\xff\xfe\xc0\x80\xed\xa0\x80\xf4\x90\x80\x80\0\0",
}


def main() -> None:
    """Write all of it to both streams."""
    for descriptor in (1, 2):
        for data in NOISE.values():
            os.write(descriptor, data + b" ")


if __name__ == "__main__":
    main()
