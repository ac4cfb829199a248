"""The worker process: jobs from standard input, answers to standard output, one after the other.

A request is its sizes, the job's name, its context and its body; an answer a size, a byte that
says whether it was done, and the file or the refusal. It ends with its standard input, at once
with the process that started it, and by SIGPROF when a job takes more of the processors' seconds
than its argument says: the time in which a busy machine kept it waiting is not its own.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import struct
import sys
from typing import BinaryIO

REQUEST = struct.Struct(">HQQ")
ANSWER = struct.Struct(">QB")
DONE, REFUSED = 0, 1

MEMORY_BYTES_MAX = 2 << 30
"""Address space of a worker; one that needs more ends, and the request is refused."""
NICE = 10
"""Probes, streams and other requests come first."""
_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Works until standard input ends; its argument is the seconds of the processors that a job may take."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the controller, which ends its workers
    os.nice(NICE)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    from wormcast.offload import jobs

    seconds_max = float(sys.argv[1])
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    while head := source.read(REQUEST.size):
        # SIGPROF ends the process. RLIMIT_CPU would know whole seconds alone.
        signal.setitimer(signal.ITIMER_PROF, seconds_max)
        name, context, body = (_read(source, size) for size in REQUEST.unpack(head))
        try:
            status, answer = DONE, jobs.run(name.decode(), context, body)
        except jobs.JobRefused as error:
            status, answer = REFUSED, json.dumps(error.answer).encode()
        sink.write(ANSWER.pack(len(answer), status))
        sink.write(answer)
        sink.flush()


def _read(source: BinaryIO, size: int) -> bytes:
    data = source.read(size)
    if len(data) != size:
        sys.exit(0)
    return data


if __name__ == "__main__":
    main()
