"""Parts of a running fabric, by the names users give them: start and stop daemons, cut and mend links."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from wormcast.mininet.choice import name_all
from wormcast.mininet.links import Link
from wormcast.mininet.nodes import stop_process

if TYPE_CHECKING:
    from wormcast.mininet.fabric import Fabric

CONTROLLER = "controller"


class PartError(ValueError):
    """No such part, or it is not in a state for this; the text says what would do. `fields`: as in a refusal."""

    def __init__(self, message: str, code: str, **fields: Any) -> None:
        super().__init__(message)
        self.fields = {"code": code, **fields}


class Parts:
    """What can be done to a fabric that is up. Of several parts all are looked at before anything is done to one."""

    def __init__(self, fabric: Fabric) -> None:
        self.fabric = fabric
        self.hosts = {f"h{number}": number for number in fabric.hosts}
        self.switches = {f"s{number}": number for number in fabric.switches}

    # --- daemons ----------------------------------------------------------------------

    def start(self, names: Sequence[str]) -> list[str]:
        """Start what has ended or was stopped: agents by their hosts ("h3"), switches ("s1"), "controller".

        Raises `PartError`.
        """
        for name in names:
            if self._runs(name):
                raise PartError(f"{name} is running", "conflict", value=name)
        for name in dict.fromkeys(names):
            if not self._runs(name):  # one process of all switches came back with another of them
                self._starter(name)()
        return list(dict.fromkeys(names))

    def stop(self, names: Sequence[str]) -> list[str]:
        """End daemons; what they forwarded or remembered goes with them. Raises `PartError`."""
        for name in names:
            if not self._runs(name):
                raise PartError(f"{name} is not running", "conflict", value=name)
            if self._shared(name):
                kind = "switches" if name in self.switches else "agents"
                raise PartError(
                    f"{name} shares its process with all other {kind}; cut its links instead",
                    "unsupported",
                    value=name,
                )
        for name in dict.fromkeys(names):
            self._stop(name)
        return list(dict.fromkeys(names))

    def _process(self, name: str) -> subprocess.Popen[bytes] | None:
        fabric = self.fabric
        if name == CONTROLLER:
            return fabric.controller
        if name in self.hosts:
            shared = fabric.shared_agents
            return fabric.agents.get(self.hosts[name]) if shared is None else shared.process
        if name in self.switches:
            return (fabric.shared or fabric.switches[self.switches[name]]).process
        choices = [CONTROLLER, *self.switches, *self.hosts]
        raise PartError(
            f"{name!r} is not the controller, a switch ({name_all(list(self.switches))}) or a host ({name_all(list(self.hosts))})",
            "not-found",
            value=name,
            choices=choices,
        )

    def _runs(self, name: str) -> bool:
        process = self._process(name)
        return process is not None and process.poll() is None

    def _shared(self, name: str) -> bool:
        if name in self.switches:
            return self.fabric.shared is not None
        return name in self.hosts and self.fabric.shared_agents is not None

    def _starter(self, name: str) -> Callable[[], None]:
        fabric = self.fabric
        if name == CONTROLLER:
            return fabric.start_controller
        if name in self.switches:
            return lambda: fabric.revive_switch(self.switches[name])
        if self._shared(name):
            return fabric.start_agents
        return lambda: fabric.start_agent(self.hosts[name])

    def _stop(self, name: str) -> None:
        fabric = self.fabric
        if name == CONTROLLER:
            fabric.stop_controller()
        elif name in self.switches:
            fabric.kill_switch(self.switches[name])
        else:
            stop_process(fabric.agents.pop(self.hosts[name]))

    # --- links --------------------------------------------------------------------------

    def cut(self, ends: Sequence[str]) -> list[Link]:
        """Cut all links between two nodes, or the one at a port of one ("s0:2"). Raises `PartError`."""
        return self._set(ends, False)

    def mend(self, ends: Sequence[str]) -> list[Link]:
        """The reverse of `cut`. Raises `PartError`."""
        return self._set(ends, True)

    def _set(self, ends: Sequence[str], up: bool) -> list[Link]:
        found = self.links(*ends)
        for link in found:
            self.fabric.set_link(link, up)
        return found

    def links(self, near: str, far: str) -> list[Link]:
        """The links between two nodes, each "s0", "h3" or "s0:2", its port. Raises `PartError`."""
        places = [self._place(near), self._place(far)]
        found = [link for link in self.fabric.links if _joins(link, places[0], places[1])]
        if not found:
            near_by = sorted(
                {other for link in self.fabric.links for other in _others(link, places[0])}, key=_in_order
            )
            raise PartError(
                f"there is no link between {near} and {far}; {near} has "
                f"{'links to ' + name_all(near_by) if near_by else 'no link'}",
                "not-found",
                value=far,
                choices=near_by,
            )
        return found

    def _place(self, text: str) -> tuple[str, int | None]:
        name, _, port = text.partition(":")
        if name not in self.hosts and name not in self.switches:
            raise PartError(
                f"{name!r} is not a switch ({name_all(list(self.switches))}) or a host ({name_all(list(self.hosts))})",
                "not-found",
                value=name,
                choices=[*self.switches, *self.hosts],
            )
        if ":" in text and not (port.isascii() and port.isdigit() and len(port) < 6):
            raise PartError(f"{text!r} is not a node with a port, such as s0:2", "syntax", value=text)
        return name, int(port) if port else None


def _ends(link: Link) -> list[tuple[str, int]]:
    near = (f"s{link.switch}", link.port)
    if link.host is not None:
        return [near, (f"h{link.host}", 0)]
    return [near, (f"s{link.far_switch}", link.far_port or 0)]


def _is(end: tuple[str, int], place: tuple[str, int | None]) -> bool:
    return end[0] == place[0] and place[1] in (None, end[1])


def _joins(link: Link, one: tuple[str, int | None], other: tuple[str, int | None]) -> bool:
    a, b = _ends(link)
    return (_is(a, one) and _is(b, other)) or (_is(a, other) and _is(b, one))


def _others(link: Link, place: tuple[str, int | None]) -> list[str]:
    a, b = _ends(link)
    return [far[0] for near, far in ((a, b), (b, a)) if _is(near, place)]


def _in_order(name: str) -> tuple[bool, int]:
    return name[0] == "h", int(name[1:])
