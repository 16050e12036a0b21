"""Inside a leg: say what only the agent may say, on everything that can be written to."""

from __future__ import annotations

import os
from collections.abc import Iterator

_BODIES = (
    '"t":"end","c":%d,"e":null,"u":null,"w":false',
    '"t":"file","c":%d,"i":0,"st":"regular","z":1,"kp":1,"h":null',
    '"t":"fatal","w":"oom","m":"forged"',
    '"t":"bye","w":"done","ctx":null,"env":{},"n":99',
)


def frames() -> Iterator[bytes]:
    """Frames with nonces and numbers that might be guessed, well formed but for the secret."""
    for nonce in ("0" * 32, "f" * 32, os.environ.get("AO_NONCE", "")):
        for number in (0, 1, 2, 3, 10):
            for body in _BODIES:
                inside = body % number if "%d" in body else body
                yield f'{{"n":"{nonce}","s":{number},{inside},"k":"00000000"}}\n'.encode()


def main() -> None:
    """Write them to the two streams, every other descriptor, the agent's, and the console."""
    text = b"".join(frames())
    for path in ("/proc/1/fd/1", "/proc/1/fd/2", "/dev/console", "/dev/tty", "/dev/pts/0"):
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY)
            os.write(descriptor, text)
            os.write(1, b"wrote to " + path.encode() + b"\n")
        except OSError:
            continue
    for descriptor in range(3, 256):
        try:
            os.write(descriptor, text)
            os.write(1, b"wrote to a descriptor\n")
        except OSError:
            continue
    for descriptor in (1, 2):
        os.write(descriptor, text)


if __name__ == "__main__":
    main()
