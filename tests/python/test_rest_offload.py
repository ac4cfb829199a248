"""What plans and verifies runs beside the event loop: bounded in size, time and number, and ended when nobody waits."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from controller_lab.agents import attached
from controller_lab.running import running, until
from controller_lab.serving import RawClient, serving
from wormcast import routing
from wormcast.api.app import create_app
from wormcast.network.ids import HostId
from wormcast.offload import jobs, pool
from wormcast.offload.pool import WAITING_MAX, WORKERS_MAX, WorkerPool
from wormcast.reconcile.controller import Controller
from wormcast.reconcile.errors import RequestError

LARGE = {"topology": routing.make("torus:64")}
MIDDLE = {"topology": routing.make("torus:24")}
SMALL = {"topology": routing.make("torus:3")}
NO_FABRIC: dict[str, Any] = {
    "topology": {"switches": [], "hosts": [], "links": []},
    "routing": {"algorithm": "osud", "root": None, "balanced": False},
}
PROBES_MIN = 20


def client_of(controller: Controller, workers: WorkerPool) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(create_app(controller, workers), raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url="http://controller/v1", timeout=600)


def heard(controller: Controller) -> int:
    """The statistics that have come from the agent."""
    return controller.agents[HostId(0)].counters.get(("heartbeats", 0), 0)


async def verify(workers: WorkerPool, body: object) -> Any:
    return json.loads(await workers.run("verify_body", NO_FABRIC, json.dumps(body).encode()))


def test_agents_and_other_requests_are_served_while_a_large_topology_is_verified(tmp_path: Path) -> None:
    async def main() -> None:
        address, workers = f"unix:{tmp_path}/agents.sock", WorkerPool()
        async with contextlib.AsyncExitStack() as stack:
            controller = await stack.enter_async_context(running(None, (address,)))
            client = await stack.enter_async_context(client_of(controller, workers))
            agent = await stack.enter_async_context(attached(address, "a0"))
            await until(lambda: agent.host is not None)
            verified = asyncio.create_task(client.post("verify", json=LARGE))
            served = 0
            while not verified.done():
                counters = [{"name": "heartbeats", "group": 0, "value": served + 1}]
                await agent.send(statistics={"counters": counters})
                while heard(controller) != served + 1 and not verified.done():
                    await asyncio.sleep(0.005)
                assert (await client.get("status")).status_code == 200
                served += not verified.done()
            answer = verified.result()
            assert answer.status_code == 200, answer.text
            assert answer.json()["deadlock_free"] is True
            assert served >= PROBES_MIN, "the verify held up the others"
            assert not agent.ended.is_set()
        await workers.close()

    asyncio.run(main())


def test_more_requests_than_there_is_room_for_are_told_to_come_again() -> None:
    async def main() -> None:
        workers = WorkerPool()
        async with running() as controller, client_of(controller, workers) as client:
            busy = [
                asyncio.create_task(client.post("verify", json=LARGE))
                for _ in range(WORKERS_MAX + WAITING_MAX)
            ]
            await until(lambda: workers._admitted == WORKERS_MAX + WAITING_MAX)
            answer = await client.post("verify", json=SMALL)
            assert answer.status_code == 503
            assert int(answer.headers["retry-after"]) > 0
            assert answer.json()["error"]["bound"].startswith(str(WORKERS_MAX + WAITING_MAX))
            assert (await client.get("groups")).status_code == 200
            for task in busy:
                task.cancel()
            await asyncio.gather(*busy, return_exceptions=True)
            await until(lambda: workers._admitted == 0)
            assert (await client.post("verify", json=SMALL)).json()["deadlock_free"] is True
        await workers.close()

    asyncio.run(main())


def test_what_takes_too_long_is_ended_and_says_so() -> None:
    async def main() -> None:
        workers = WorkerPool(job_seconds_max=0.5)
        with pytest.raises(
            RequestError, match=r"took too long; possible: 0\.5 s of the processors' time"
        ) as refused:
            await verify(workers, LARGE)
        assert refused.value.status == 504
        assert workers.ended == 1
        assert not workers._idle, "a worker that is gone gets further work"
        assert (await verify(workers, SMALL))["deadlock_free"] is True
        await workers.close()

    asyncio.run(main())


def test_jobs_before_it_take_nothing_from_the_time_of_a_job() -> None:
    async def main() -> None:
        workers = WorkerPool(job_seconds_max=1.0)
        for _ in range(30):
            assert (await verify(workers, MIDDLE))["deadlock_free"] is True
        assert workers.ended == 0
        await workers.close()

    asyncio.run(main())


def test_time_in_which_a_worker_stood_still_does_not_count() -> None:
    async def main() -> None:
        workers = WorkerPool(job_seconds_max=1.0)
        async for worker in _started(workers):
            worker._process.send_signal(signal.SIGSTOP)
            task = asyncio.create_task(verify(workers, SMALL))
            await asyncio.sleep(3)
            worker._process.send_signal(signal.SIGCONT)
            assert (await task)["deadlock_free"] is True
        await workers.close()

    asyncio.run(main())


async def _started(workers: WorkerPool) -> Any:
    """A worker that is there already, so that the test can look at it."""
    worker = await pool._Worker.start(workers._job_seconds_max)
    workers._idle.append(worker)
    yield worker


def test_time_in_which_the_controller_stood_still_is_no_wait_for_a_worker() -> None:
    async def main() -> None:
        workers = WorkerPool(wait_seconds_max=5.0)
        for _ in range(WORKERS_MAX):
            await workers._places.acquire()
        task = asyncio.create_task(verify(workers, SMALL))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        time.sleep(6)  # as by SIGSTOP
        for _ in range(WORKERS_MAX):
            workers._places.release()
        assert (await task)["deadlock_free"] is True
        await workers.close()

    asyncio.run(main())


def test_work_that_nobody_waits_for_any_more_is_ended(tmp_path: Path) -> None:
    async def main() -> None:
        workers, path = WorkerPool(), tmp_path / "rest.sock"
        async with running() as controller, serving(controller, path, workers):
            client = await RawClient.connect(path)
            body = json.dumps(LARGE).encode()
            head = f"POST /v1/verify HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {len(body)}"
            client.send(head.encode() + b"\r\n\r\n" + body)
            await until(lambda: workers._admitted == 1)
            client.close()
            await until(lambda: workers.ended == 1)
            await until(lambda: workers._admitted == 0)

    asyncio.run(main())


def test_a_worker_that_dies_refuses_its_request_and_no_other() -> None:
    async def main() -> None:
        workers = WorkerPool()
        async for worker in _started(workers):
            task = asyncio.create_task(verify(workers, LARGE))
            await until(lambda: not workers._idle)
            await asyncio.sleep(0.2)
            worker._process.kill()
            with pytest.raises(RequestError, match="memory"):
                await task
        assert (await verify(workers, SMALL))["deadlock_free"] is True
        await workers.close()

    asyncio.run(main())


def star(switches: int, hosts: int = 0) -> dict[str, Any]:
    return {
        "switches": [{"id": n, "ports": 8} for n in range(switches)],
        "hosts": [{"id": n, "switch": 0, "port": 0} for n in range(hosts)],
        "links": [],
    }


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ({"topology": star(jobs.SWITCHES_MAX + 1)}, 422, "4097 switches are too many; possible: 4096"),
        ({"topology": star(1, jobs.HOSTS_MAX + 1)}, 422, "16385 hosts are too many; possible: 16384"),
        ({"topology": {**star(1), "links": [{}] * (jobs.LINKS_MAX + 1)}}, 422, "65537 links are too many"),
        ({"topology": star(1, 4097)}, 422, "pairs of the topology's 4097 hosts are too many"),
        ({"topology": {"switches": 3}}, 422, "not a topology"),
        ({"topology": []}, 422, "body.topology"),
        ({"colour": 1}, 422, "body.colour: unknown field"),
        ([], 422, "the body is not a JSON object"),
    ],
)
def test_input_beyond_the_bounds_is_refused_by_name(body: object, status: int, message: str) -> None:
    with pytest.raises(jobs.JobRefused, match=message) as refused:
        jobs.run("verify_body", json.dumps(NO_FABRIC).encode(), json.dumps(body).encode())
    assert refused.value.answer["status"] == status
