"""Run one confined container to its end and take what it printed."""

from __future__ import annotations

import time
from typing import NamedTuple

from runner.core.readback import differences
from runner.errors import EngineFailure, IntegrityError
from runner.model.container import ContainerSpec, ImageInfo
from runner.ports import Engine

_GRACE_SECONDS = 10.0


class Printed(NamedTuple):
    """What a container printed and how it ended.

    Attributes:
        exit_code: Exit code.
        oom_killed: The engine says that it ran out of memory.
        stdout: All of it; more than the bound is a failure.
        stderr: Leading bytes.
    """

    exit_code: int
    oom_killed: bool
    stdout: bytes
    stderr: bytes


def run_once(
    engine: Engine,
    spec: ContainerSpec,
    image: ImageInfo,
    *,
    api: tuple[int, int],
    seconds: float,
    most: int = 16 << 20,
) -> Printed:
    """Create, read back, compare, start, wait, remove.

    Args:
        engine: The engine.
        spec: The container.
        image: Its image.
        api: Negotiated API version.
        seconds: Wall time it may take.
        most: Bytes of standard output it may print.

    Raises:
        IntegrityError: The created container is not what was asked for; it was not started.
        EngineFailure: The engine failed, or the container did not end in time or printed too much.
    """
    container_id = engine.create(spec)
    try:
        found = differences(spec, engine.inspect(container_id), api=api, image_env=image.env)
        if found:
            fields = ", ".join(item.field for item in found)
            raise IntegrityError(f"the created container differs in {fields}", where=spec.name)
        attachment = engine.attach(container_id)
        out, err = bytearray(), bytearray()
        try:
            engine.start(container_id)
            for stream, data in attachment.chunks(time.monotonic() + seconds):
                if stream == 1:
                    out += data
                    if len(out) > most:
                        raise EngineFailure("the container printed too much", detail="output")
                else:
                    err += data[: 65536 - len(err)]
        except TimeoutError as error:
            raise EngineFailure(
                f"the container did not end within {seconds:.0f} s", detail="timeout"
            ) from error
        except OSError as error:
            raise EngineFailure(f"the stream broke: {error}", detail="engine_lost") from error
        finally:
            attachment.close()
        state = engine.wait(container_id, _GRACE_SECONDS)
        return Printed(state.exit_code, state.oom_killed, bytes(out), bytes(err))
    except TimeoutError as error:
        raise EngineFailure("the container does not end", detail="timeout") from error
    finally:
        engine.remove(container_id)
