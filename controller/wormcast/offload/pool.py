"""Worker processes: how many, for how long, and what becomes of work nobody waits for any more."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from typing import Any

from wormcast.offload.worker import ANSWER, DONE, MEMORY_BYTES_MAX, REQUEST
from wormcast.reconcile.errors import RequestError

WORKERS_MAX = 2
"""Jobs at a time."""
WAITING_MAX = 6
"""Requests besides, that bring their input or wait for a worker; further ones are asked to come again."""
JOB_SECONDS_MAX = 60.0
"""A job that takes more of the processors' time is ended, however long that lasts on a busy machine."""
WAIT_SECONDS_MAX = 60.0
"""Who has waited so long for a worker is asked to come again."""
ANSWER_BYTES_MAX = 256 << 20
RETRY_AFTER_S = 2

_TICK_S = 0.25


class WorkerPool:
    """Runs jobs of `wormcast.offload.jobs` beside the event loop."""

    def __init__(
        self, job_seconds_max: float = JOB_SECONDS_MAX, wait_seconds_max: float = WAIT_SECONDS_MAX
    ) -> None:
        self._job_seconds_max = job_seconds_max
        self._wait_seconds_max = wait_seconds_max
        self._places = asyncio.Semaphore(WORKERS_MAX)
        self._idle: list[_Worker] = []
        self._admitted = 0
        self.done = 0
        """Jobs answered, refused ones too."""
        self.turned_away = 0
        """Requests refused because as many were there as may be."""
        self.ended = 0
        """Jobs ended for time or memory, or because nobody waited any more."""

    @contextlib.contextmanager
    def admit(self) -> Iterator[None]:
        """A place for one request while it brings its input and waits. Raises `RequestError`."""
        if self._admitted >= WORKERS_MAX + WAITING_MAX:
            self.turned_away += 1
            most = f"{WORKERS_MAX + WAITING_MAX} requests at a time that plan or verify"
            raise RequestError(
                503, "too much to do; try again later", bound=most, retry_after_s=RETRY_AFTER_S
            )
        self._admitted += 1
        try:
            yield
        finally:
            self._admitted -= 1

    async def run(self, job: str, context: dict[str, Any], body: bytes = b"") -> bytes:
        """The answer of a job; call it with a place of `admit`. Cancelling it ends the work. Raises `RequestError`."""
        async with self._place():
            worker = None
            try:
                worker = self._idle.pop() if self._idle else await _Worker.start(self._job_seconds_max)
                status, answer = await worker.ask(job, json.dumps(context).encode(), body)
            except BaseException:
                self.ended += 1
                if worker is not None:
                    await worker.kill()
                raise
            self._idle.append(worker)
        self.done += 1
        if status != DONE:
            raise _refusal(json.loads(answer))
        return answer

    async def close(self) -> None:
        while self._idle:
            await self._idle.pop().kill()

    @contextlib.asynccontextmanager
    async def _place(self) -> AsyncIterator[None]:
        turn = asyncio.create_task(self._places.acquire())
        try:
            if not await _wait(turn, self._wait_seconds_max):
                self.turned_away += 1
                raise RequestError(503, "too much to do; try again later", retry_after_s=RETRY_AFTER_S)
        except BaseException:
            if turn.done() and not turn.cancelled():
                self._places.release()
            turn.cancel()
            raise
        try:
            yield
        finally:
            self._places.release()


async def _wait(task: asyncio.Task[Any], seconds_max: float) -> bool:
    """Whether a task ends in time. Time in which this process itself stood still does not count."""
    loop = asyncio.get_running_loop()
    left = seconds_max
    while left > 0:
        began = loop.time()
        if (await asyncio.wait({task}, timeout=min(left, _TICK_S)))[0]:
            return True
        left -= min(loop.time() - began, 2 * _TICK_S)
    return False


def _refusal(answer: dict[str, Any]) -> RequestError:
    error = RequestError(
        answer["status"],
        answer["message"],
        value=answer.get("value"),
        choices=answer.get("choices"),
        code=answer.get("code"),
    )
    error.bound, error.line, error.column = answer.get("bound"), answer.get("line"), answer.get("column")
    return error


class _Worker:
    def __init__(self, process: asyncio.subprocess.Process, job_seconds_max: float) -> None:
        self._process = process
        self._job_seconds_max = job_seconds_max

    @classmethod
    async def start(cls, job_seconds_max: float) -> _Worker:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "wormcast.offload.worker",
            str(job_seconds_max),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=1 << 20,
        )
        return cls(process, job_seconds_max)

    async def ask(self, job: str, context: bytes, body: bytes) -> tuple[int, bytes]:
        """Status and answer. Raises `RequestError` if the worker ends instead."""
        source, sink = self._process.stdin, self._process.stdout
        assert source is not None
        assert sink is not None
        name = job.encode()
        try:
            source.writelines([REQUEST.pack(len(name), len(context), len(body)), name, context, body])
            await source.drain()
            size, status = ANSWER.unpack(await sink.readexactly(ANSWER.size))
            if size <= ANSWER_BYTES_MAX:
                return status, await sink.readexactly(size)
        except (ConnectionError, asyncio.IncompleteReadError):
            code = await self._process.wait()
            if code == -signal.SIGPROF:
                bound = f"{self._job_seconds_max:g} s of the processors' time"
                raise RequestError(504, "this took too long", bound=bound, code="timeout") from None
            bound = f"{MEMORY_BYTES_MAX >> 20} MiB of memory"
            raise RequestError(
                422,
                f"the worker ended with {code}: most likely the request is too large",
                bound=bound,
                code="too-large",
            ) from None
        raise RequestError(
            422, f"an answer of {size} bytes", value=size, bound=f"{ANSWER_BYTES_MAX} bytes", code="too-large"
        )

    async def kill(self) -> None:
        """Ends the process, whatever it does, and waits until it is gone."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()
        assert self._process.stdin is not None
        self._process.stdin.close()
        with contextlib.suppress(OSError):  # what it did not read any more
            await self._process.stdin.wait_closed()
