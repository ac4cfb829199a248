"""The controller on real switches: discovery, tables, failures, restarts. Each switch that is installed."""

from __future__ import annotations

import asyncio
import functools
import os
import random
import shutil
import signal
import time
from collections.abc import Iterator

import pytest
from controller_lab.agents import TestAgent, attached
from controller_lab.namespace import LINKS, ROOT, SWITCHES, Lab, Target, targets, udp_frame
from controller_lab.running import until
from wormcast.discovery.links import SWITCH_GRACE_S

pytestmark = pytest.mark.network


@pytest.fixture(scope="module", params=targets(), ids=lambda target: target.name)
def lab(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Three switches in a ring with the controller on them."""
    target: Target = request.param
    if target.binary is None:
        pytest.skip(f"{target.name} is not installed")
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    with Lab(target, tmp_path_factory.mktemp("lab")) as lab:
        lab.start_controller()
        lab.until(lambda: lab.links() == set(LINKS))
        yield lab


def epoch(lab: Lab) -> int:
    value: int = lab.get("status")["epoch"]
    return value


def written(lab: Lab) -> list[int]:
    return [s["updates_written"] for s in lab.get("switches")["switches"]]


def connected(lab: Lab) -> bool:
    return all(s["connected"] for s in lab.get("switches")["switches"])


def metric(lab: Lab, name: str) -> dict[str, float]:
    lines = lab.api.get("metrics").text.splitlines()
    return {
        line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if line.startswith(name)
    }


@pytest.fixture(scope="module")
def plain_hosts(lab: Lab) -> Lab:
    """Hosts h0 to h2, declared; ids 10 to 12."""
    for n in range(SWITCHES):
        lab.post("hosts", {"name": f"p{n}", "switch": n, "port": 0, "id": 10 + n})
    return lab


def receivers(lab: Lab, sender: int, group: str, seconds: float = 0.7) -> dict[str, int]:
    """Where a datagram of a plain host arrives, and how often."""
    frame = udp_frame(group, b"payload of a plain program")
    listen = [f"h{n}" for n in range(SWITCHES) if n != sender]
    got = lab.ask("exchange", interface=f"h{sender}", frames=[frame.hex()], listen=listen, seconds=seconds)
    altered = {name: [f for f in frames if f != frame.hex()] for name, frames in got.items()}
    assert not any(altered.values()), f"altered: {altered}"
    return {name: len(frames) for name, frames in got.items() if frames}


def test_class_d_packets_reach_members_once_and_no_one_else(plain_hosts: Lab) -> None:
    lab = plain_hosts
    group = lab.post("groups", {"scheme": "switch", "members": [10, 12], "class_d": "239.1.2.3"})
    other = lab.post("groups", {"scheme": "switch", "members": [11, 12], "class_d": "239.7.7.4"})
    try:
        assert receivers(lab, 0, "239.1.2.3") == {"h2": 1}
        assert receivers(lab, 1, "239.1.2.3") == {"h0": 1, "h2": 1}, "the sender need not be a member"
        assert receivers(lab, 0, "239.7.7.4") == {"h1": 1, "h2": 1}
        assert receivers(lab, 0, "239.1.2.9") == {}
        lab.post(f"groups/{group['id']}/members", {"members": ["p1"]})
        assert receivers(lab, 0, "239.1.2.3") == {"h1": 1, "h2": 1}
    finally:
        for made in (group, other):
            assert lab.api.delete(f"groups/{made['id']}").status_code == 204
    assert receivers(lab, 0, "239.1.2.3") == {}, "the group is gone"
    drops = metric(lab, "wormcast_switch_drops_total")
    assert drops['wormcast_switch_drops_total{switch="0",reason="class_d_unknown"}'] >= 2


def test_a_group_survives_the_cut_of_a_link_it_uses(plain_hosts: Lab) -> None:
    lab = plain_hosts
    group = lab.post("groups", {"scheme": "switch", "members": [10, 11, 12], "class_d": "239.1.2.3"})
    link = LINKS[0]
    before = epoch(lab)
    try:
        lab.cut(link)
        lab.until(lambda: lab.links() == set(LINKS[1:]))
        lab.until(lambda: receivers(lab, 0, "239.1.2.3", 0.2) == {"h1": 1, "h2": 1})
    finally:
        lab.cut(link, restore=True)
        lab.until(lambda: lab.links() == set(LINKS))
        lab.api.delete(f"groups/{group['id']}")
    assert epoch(lab) == before, "there is no agent that would have to be told"


def test_a_restarted_controller_finds_everything_in_place(plain_hosts: Lab) -> None:
    lab = plain_hosts
    group = lab.post("groups", {"scheme": "switch", "members": [10, 11, 12], "class_d": "239.1.2.3"})
    assert lab.stop_controller() == 0
    assert receivers(lab, 0, "239.1.2.3") == {"h1": 1, "h2": 1}, "the fabric forwards without a controller"
    for force in (True, False):
        lab.start_controller()
        lab.until(lambda: connected(lab))
        assert lab.links() == set(LINKS)
        assert lab.get("groups")["groups"][0]["members"] == [10, 11, 12]
        assert receivers(lab, 2, "239.1.2.3") == {"h0": 1, "h1": 1}
        assert written(lab) == [0] * SWITCHES, "nothing differed, so nothing was to be written"
        if force:
            lab.stop_controller(force=True)
    assert lab.api.delete(f"groups/{group['id']}").status_code == 204


def test_wide_mode_keeps_addresses_apart_that_narrow_mode_joins(plain_hosts: Lab) -> None:
    lab = plain_hosts
    first = lab.post("groups", {"scheme": "switch", "members": [10, 11], "class_d": "239.1.2.3"})
    second = lab.post("groups", {"scheme": "switch", "members": [12], "class_d": "239.9.9.3"})
    assert receivers(lab, 0, "239.1.2.3") == {"h1": 1, "h2": 1}, "both have the number 3"
    lab.stop_controller()
    try:
        lab.start_controller("controller", "--class-d", "wide")
        lab.until(lambda: connected(lab) and min(written(lab)) > 0)
        lab.until(lambda: receivers(lab, 0, "239.1.2.3", 0.3) == {"h1": 1})
        assert receivers(lab, 0, "239.9.9.3") == {"h2": 1}
        assert receivers(lab, 0, "239.4.4.3") == {}, "no group carries it"
        numbers = [lab.get(f"groups/{made['id']}")["class_d_number"] for made in (first, second)]
        lab.stop_controller()
        lab.start_controller()
        lab.until(lambda: connected(lab))
        assert lab.get("status")["class_d_mode"] == "wide", "kept in the state file"
        again = [lab.get(f"groups/{made['id']}")["class_d_number"] for made in (first, second)]
        assert again == numbers
        assert written(lab) == [0] * SWITCHES
    finally:
        lab.stop_controller()
        lab.start_controller("controller", "--class-d", "narrow")
        lab.until(lambda: connected(lab) and lab.links() == set(LINKS))
        for made in (first, second):
            lab.api.delete(f"groups/{made['id']}")


def test_a_switch_that_restarts_gets_its_program_and_tables_back(plain_hosts: Lab) -> None:
    lab = plain_hosts
    group = lab.post("groups", {"scheme": "switch", "members": [10, 11, 12], "class_d": "239.1.2.3"})
    lab.ask("stop", name="s1", force=True)
    lab.until(lambda: lab.links() == {LINKS[2]})
    assert receivers(lab, 0, "239.1.2.3") == {"h2": 1}
    lab.start_switch(1)
    lab.until(lambda: lab.links() == set(LINKS))
    lab.until(lambda: receivers(lab, 0, "239.1.2.3", 0.2) == {"h1": 1, "h2": 1})
    assert lab.api.delete(f"groups/{group['id']}").status_code == 204


def test_another_program_on_a_switch_is_replaced_without_double_copies(plain_hosts: Lab) -> None:
    lab = plain_hosts
    group = lab.post("groups", {"scheme": "switch", "members": [10, 11, 12], "class_d": "239.1.2.3"})
    lab.pipeline = lab.directory / "pipeline"
    shutil.copytree(ROOT / "p4src" / "compiled", lab.pipeline)
    with (lab.pipeline / "wormcast.json").open("a") as blob:
        blob.write("\n")  # the same program to a switch, another one to a cookie
    try:
        lab.stop_controller()
        lab.start_controller()
        lab.until(lambda: connected(lab) and min(written(lab)) > 0)
        lab.until(lambda: receivers(lab, 0, "239.1.2.3", 0.3) == {"h1": 1, "h2": 1})
    finally:
        lab.pipeline = None
        lab.stop_controller()
        lab.start_controller()
        lab.until(lambda: connected(lab) and lab.links() == set(LINKS))
        lab.api.delete(f"groups/{group['id']}")


def test_a_later_controller_takes_over_and_the_earlier_one_takes_back(plain_hosts: Lab) -> None:
    lab = plain_hosts
    group = lab.post("groups", {"scheme": "switch", "members": [10, 12], "class_d": "239.1.2.3"})
    before = written(lab)
    lab.start_controller("second")
    second = lab.client("second")
    lab.until(lambda: len(second.get("links").json()["links"]) == len(LINKS))
    assert not connected(lab)
    assert all("another controller is primary" in s["last_error"] for s in lab.get("switches")["switches"])
    time.sleep(SWITCH_GRACE_S + 0.5)
    assert lab.links() == set(LINKS), "it keeps what it knew"
    assert written(lab) == before, "it writes nothing"
    assert receivers(lab, 0, "239.1.2.3") == {}, "the second one knows no group"
    lab.stop_controller(name="second")
    lab.until(lambda: connected(lab))
    lab.until(lambda: receivers(lab, 0, "239.1.2.3", 0.3) == {"h2": 1})
    assert lab.links() == set(LINKS)
    assert lab.api.delete(f"groups/{group['id']}").status_code == 204


def test_a_switch_that_stands_still_holds_up_no_other(plain_hosts: Lab) -> None:
    lab = plain_hosts
    lab.ask("signal", name="s1", number=signal.SIGSTOP)
    group = None
    try:
        group = lab.post("groups", {"scheme": "switch", "members": [10, 11, 12], "class_d": "239.1.2.3"})
        lab.until(lambda: receivers(lab, 0, "239.1.2.3", 0.3) == {"h2": 1})
        assert receivers(lab, 2, "239.1.2.3") == {"h0": 1}
    finally:
        lab.ask("signal", name="s1", number=signal.SIGCONT)
    lab.until(lambda: lab.links() == set(LINKS))
    lab.until(lambda: receivers(lab, 1, "239.1.2.3", 0.3) == {"h0": 1, "h2": 1})
    lab.until(lambda: all(s["in_step"] for s in lab.get("switches")["switches"]))
    shown = lab.get("switches/1")
    assert shown["planned"] == shown["installed"]
    assert lab.get("status")["waiting_for"] == []
    assert lab.api.delete(f"groups/{group['id']}").status_code == 204


class Chaos:
    """Random failures and requests; what should be true afterwards follows from what was asked."""

    def __init__(self, lab: Lab, seed: int) -> None:
        self.lab = lab
        self.rng = random.Random(seed)
        self.cut: set[tuple[int, int, int, int]] = set()
        self.members: dict[int, set[int]] = {}
        self.log: list[str] = []

    def step(self) -> None:
        """One thing happens, and the next before the fabric has come to rest."""
        action = self.rng.choice(
            [self.flip_link, self.restart_switch, self.restart_controller, *[self.change_groups] * 3]
        )
        action()
        time.sleep(self.rng.uniform(0.0, 1.5))

    def flip_link(self) -> None:
        link = self.rng.choice(LINKS)
        self.log.append(f"flip {link}")
        self.lab.cut(link, restore=link in self.cut)
        self.cut ^= {link}

    def restart_switch(self) -> None:
        switch = self.rng.randrange(SWITCHES)
        self.log.append(f"restart switch {switch}")
        self.lab.ask("stop", name=f"s{switch}", force=True)
        time.sleep(self.rng.uniform(0.0, 1.5))
        self.lab.start_switch(switch)

    def restart_controller(self) -> None:
        self.log.append("restart controller")
        self.lab.stop_controller(force=self.rng.random() < 0.7)
        self.lab.start_controller()

    def change_groups(self) -> None:
        number = self.rng.randrange(1, 5)
        if self.members.pop(number, None) is not None:
            self.log.append(f"delete {number}")
            assert self.lab.api.delete(f"groups/{number}").status_code == 204
            return
        members = self.rng.sample(range(SWITCHES), self.rng.randint(1, SWITCHES))
        self.log.append(f"create {number} {members}")
        body = {
            "id": number,
            "scheme": "switch",
            "members": [10 + m for m in members],
            "class_d": f"239.5.5.{number}",
        }
        self.lab.post("groups", body)
        self.members[number] = set(members)

    def check(self) -> None:
        """All links back; every group reaches its members and no one else, from everywhere."""
        for link in sorted(self.cut):
            self.lab.cut(link, restore=True)
        self.lab.until(lambda: connected(self.lab) and self.lab.links() == set(LINKS))
        for number in range(1, 5):
            for sender in range(SWITCHES):
                wanted = {f"h{m}": 1 for m in self.members.get(number, set()) - {sender}}
                self.lab.until(functools.partial(self.arrives, number, sender, wanted))
        self.lab.stop_controller(force=True)
        self.lab.start_controller()
        self.lab.until(lambda: connected(self.lab))
        assert written(self.lab) == [0] * SWITCHES, "the switches held something else than the plan"
        for number in self.members:
            assert self.lab.api.delete(f"groups/{number}").status_code == 204

    def arrives(self, number: int, sender: int, wanted: dict[str, int]) -> bool:
        """Whether a datagram to a group arrives where it should, once."""
        return receivers(self.lab, sender, f"239.5.5.{number}", 0.15) == wanted


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_whatever_happens_the_fabric_ends_in_the_planned_state(plain_hosts: Lab, seed: int) -> None:
    chaos = Chaos(plain_hosts, seed)
    try:
        for _ in range(15):
            chaos.step()
        chaos.check()
    except AssertionError as error:
        raise AssertionError(f"seed {seed}: {'; '.join(chaos.log)}\n{error}") from error


def test_agents_get_a_way_around_a_cut(lab: Lab) -> None:
    async def main() -> None:
        async with (
            attached(lab.agents_address, "h0", host_id=0) as one,
            attached(lab.agents_address, "h1") as two,
        ):
            await until(lambda: one.plans and route_to(one, two) == [1, 0])
            group = await asyncio.to_thread(lab.post, "groups", {"scheme": "repeat", "members": ["h0", "h1"]})
            await until(lambda: [g.id for g in one.plans[-1].groups] == [group["id"]])
            before = one.plans[-1].epoch
            await asyncio.to_thread(lab.cut, LINKS[0])
            await until(lambda: route_to(one, two) == [3, 2, 0])
            await until(lambda: two.plans[-1].epoch == one.plans[-1].epoch)
            assert one.plans[-1].epoch == before + 1
            assert [list(g.members) for g in one.plans[-1].groups] == [[one.host, two.host]]
            await asyncio.to_thread(lab.cut, LINKS[0], True)
            await until(lambda: route_to(one, two) == [1, 0])
            await asyncio.to_thread(lab.api.delete, f"groups/{group['id']}")

    for host in lab.get("hosts")["hosts"]:
        assert lab.api.delete(f"hosts/{host['id']}").status_code == 204
    for host in range(2):
        lab.announce(host)
    try:
        asyncio.run(main())
    finally:
        for host in range(2):
            lab.ask("quiet", interface=f"h{host}")


def route_to(one: TestAgent, other: TestAgent) -> list[int] | None:
    """The route in the newest plan of an agent."""
    return next((list(route.ports) for route in one.plans[-1].routes if route.host == other.host), None)
