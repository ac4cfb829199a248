"""Groups that nobody has named: `wormcast send --to` finds the group of its hosts by a name that is made of them."""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Iterator, Sequence

from wormcast.network.groups import Group

GROUPS_MAX = 1024
"""So many of them. Whether a message is under way in one is known to its agents alone, so none is removed for another."""
NAME_MAX = 60
"""Characters of a name that says the members; names of more members have a digest in their place."""

_AGAIN = re.compile(r"\.[0-9]+\Z")


def names_of(members: Sequence[int]) -> Iterator[str]:
    """Names for the group of these members, ascending: the first one that no other group has is its own. An operator
    may have taken some, or changed the members of a group of this name."""
    name = f"to-{'-'.join(map(str, members))}"
    if len(name) > NAME_MAX:
        name = f"to-{len(members)}-hosts-{hashlib.sha256(name.encode()).hexdigest()[:24]}"
    yield name
    for number in itertools.count(2):
        yield f"{name}.{number}"


def is_named_by_members(group: Group) -> bool:
    """Whether `send --to` would use the group: its name is made of its members."""
    name = group.name
    return name.startswith("to-") and _AGAIN.sub("", name) == next(names_of(group.members))
