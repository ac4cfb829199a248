"""What a switch says of its ports over gNMI, and what is made of it."""

from __future__ import annotations

import pytest
from finsy.gnmiclient import GNMIUpdate, gnmi_update
from finsy.gnmipath import GNMIPath
from wormcast.p4rt.port_states import PORTS_MAX, PortStates


def say(states: PortStates, name: str, leaf: str, value: int | str) -> None:
    path = GNMIPath(f"interfaces/interface[name={name}]/state/{leaf}")
    states.take(GNMIUpdate(0, path, gnmi_update(path, value).val))


@pytest.mark.parametrize("status", ["DOWN", "LOWER_LAYER_DOWN", "NOT_PRESENT"])
def test_ports_that_are_down_are_told_by_number(status: str) -> None:
    states = PortStates()
    say(states, "eth1", "oper-status", status)
    assert not states.current().down, "its number is not known yet"
    say(states, "eth1", "ifindex", 7)
    say(states, "eth2", "ifindex", 8)
    say(states, "eth2", "oper-status", "UP")
    assert states.current().down == {7}
    say(states, "eth1", "oper-status", "UP")
    assert not states.current().down


@pytest.mark.parametrize("status", ["UNKNOWN", "TESTING", "DORMANT"])
def test_what_does_not_say_down_is_not_down(status: str) -> None:
    states = PortStates()
    say(states, "eth1", "ifindex", 7)
    say(states, "eth1", "oper-status", status)
    assert not states.current().down


def test_what_a_switch_may_say_is_bounded() -> None:
    states = PortStates()
    for number in range(PORTS_MAX + 10):
        say(states, f"eth{number}", "oper-status", "DOWN")
        say(states, f"eth{number}", "ifindex", number)
    assert states.current().down == set(range(PORTS_MAX))


def test_mtus_are_told_as_the_kernel_counts_them() -> None:
    states = PortStates()
    say(states, "eth1", "mtu", 1514)
    assert states.current().mtus == {}, "its number is not known yet"
    say(states, "eth1", "ifindex", 7)
    say(states, "eth2", "ifindex", 8)
    assert states.current().mtus == {7: 1500}
    say(states, "eth1", "mtu", 9014)
    assert states.current().mtus == {7: 9000}
    say(states, "eth1", "mtu", 65_535)
    assert states.current().mtus == {7: 65_535}, "the leaf has no room for the Ethernet header too"
    say(states, "eth1", "mtu", 0)
    assert states.current().mtus == {}, "no frame is shorter than its header"
