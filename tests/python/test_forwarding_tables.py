"""What a P4 table says about destinations, from its entries: prefixes, ranks, actions, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from finsy.proto import p4i, p4r
from wormcast.p4rt.forwarding_tables import SwitchEntities, UnfitTableError, Wanted, rows_of

LPM, EXACT, TERNARY, RANGE, OPTIONAL = (
    p4i.MatchField.LPM,
    p4i.MatchField.EXACT,
    p4i.MatchField.TERNARY,
    p4i.MatchField.RANGE,
    p4i.MatchField.OPTIONAL,
)
WANTED = Wanted("ipv4_lpm", None, "port")


def program(*fields: tuple[str, int, Any]) -> Any:
    """A table with these match fields, and three actions: forward(mac, port), drop() and flood(group)."""
    info = p4i.P4Info()
    for number, (name, parameters) in enumerate(
        [("forward", ["mac", "port"]), ("drop", []), ("flood", ["group"])], 1
    ):
        action = info.actions.add(preamble=p4i.Preamble(id=number, name=f"MyIngress.{name}", alias=name))
        for place, parameter in enumerate(parameters, 1):
            action.params.add(id=place, name=parameter, bitwidth=9)
    table = info.tables.add(preamble=p4i.Preamble(id=77, name="MyIngress.ipv4_lpm", alias="ipv4_lpm"))
    for place, (name, bits, kind) in enumerate(fields, 1):
        table.match_fields.add(id=place, name=name, bitwidth=bits, match_type=kind)
    return info


def action(number: int, **values: int) -> Any:
    made = p4r.Action(action_id=number)
    for place, name in enumerate({1: ["mac", "port"], 2: [], 3: ["group"]}[number], 1):
        made.params.add(param_id=place, value=values.get(name, 0).to_bytes(2))
    return p4r.TableAction(action=made)


def forward(port: int) -> Any:
    return action(1, mac=9, port=port)


def entry(what: Any, priority: int = 0, *, default: bool = False, **matches: Any) -> Any:
    """`f1=(value, length)` for lpm, `f1=(value, mask, "ternary")`, `f1=value` for exact."""
    made = p4r.TableEntry(table_id=77, action=what, priority=priority, is_default_action=default)
    for name, value in matches.items():
        match = made.match.add(field_id=int(name[1:]))
        if isinstance(value, int):
            match.exact.value = value.to_bytes(16).lstrip(b"\0") or b"\0"
        elif len(value) == 2:
            match.lpm.value, match.lpm.prefix_len = value[0].to_bytes(4), value[1]
        else:
            match.ternary.value, match.ternary.mask = value[0].to_bytes(4), value[1].to_bytes(4)
    return made


def read(info: Any, *entries: Any, wanted: Wanted = WANTED) -> dict[str, list[int]]:
    rows = rows_of(SwitchEntities(info, list(entries)), wanted)
    return {row["key"]: row["ports"] for row in rows.entries}


def test_prefixes_and_the_default_action() -> None:
    found = read(
        program(("dst", 32, LPM)),
        entry(forward(3), f1=(0x0A000100, 24)),
        entry(forward(4), f1=(0x0A000101, 32)),
        entry(action(2), f1=(0x0A000200, 24)),
        entry(forward(511), f1=(0x0A000300, 24)),
        entry(forward(1), default=True),
    )
    # 511 is where BMv2 drops: no link is there.
    assert found == {
        "0x0/0": [1],
        "0xa000100/24": [3],
        "0xa000101/32": [4],
        "0xa000200/24": [],
        "0xa000300/24": [],
    }


def test_a_default_action_counts_where_no_entry_does() -> None:
    info = program(("dst", 32, LPM))
    default = entry(forward(1), default=True)
    assert read(info, entry(forward(2)), default) == {"0x0/0": [2]}
    # Nothing is said of what a default action drops: packets that come there are lost.
    assert read(info, entry(forward(2), f1=(0, 8)), entry(action(2), default=True)) == {"0x0/8": [2]}


def test_an_exact_field_beside_one_that_no_entry_uses() -> None:
    info = program(("port", 9, OPTIONAL), ("dst", 128, EXACT))
    assert read(info, entry(forward(2), f2=1 << 100)) == {f"{1 << 100:#x}/128": [2]}
    assert read(info, entry(forward(2), f2=5), wanted=Wanted("MyIngress.ipv4_lpm", "dst", "port")) == {
        "0x5/128": [2]
    }


def test_ternary_entries_are_ranked_as_prefixes_are_or_refused() -> None:
    info = program(("dst", 32, TERNARY))
    wide, narrow = (0x0A000000, 0xFF000000, "ternary"), (0x0A010000, 0xFFFF0000, "ternary")
    assert read(
        info, entry(forward(1), 5, f1=wide), entry(forward(2), 6, f1=narrow), entry(forward(3), 1)
    ) == {
        "0x0/0": [3],
        "0xa000000/8": [1],
        "0xa010000/16": [2],
    }
    with pytest.raises(UnfitTableError, match="an entry of /8 comes before one of /16 in it"):
        read(info, entry(forward(1), 6, f1=wide), entry(forward(2), 5, f1=narrow))
    elsewhere = (0x0B010000, 0xFFFF0000, "ternary")
    assert len(read(info, entry(forward(1), 6, f1=wide), entry(forward(2), 5, f1=elsewhere))) == 2
    with pytest.raises(UnfitTableError, match="mask 0xff00ff, which is no prefix"):
        read(info, entry(forward(1), 6, f1=(0, 0x00FF00FF, "ternary")))
    assert read(info, entry(forward(1), 6, f1=wide), entry(forward(2), 7, f1=wide)) == {"0xa000000/8": [2]}
    with pytest.raises(UnfitTableError, match="has two entries for 0xa000000/8"):
        read(info, entry(forward(1), 6, f1=wide), entry(forward(2), 6, f1=wide))


def test_what_cannot_be_followed_is_refused() -> None:
    two = program(("vrf", 9, EXACT), ("dst", 32, LPM))
    both = entry(forward(1), f1=1, f2=(0, 8))
    for info, entries, wanted, message in [
        (two, [both], WANTED, "does not forward by one destination: its entries match vrf, dst"),
        (two, [both], Wanted("ipv4_lpm", "dst", "port"), "its entries match vrf, dst"),
        (two, [both], Wanted("ipv4_lpm", "src", "port"), "has no match field 'src'; it has vrf, dst"),
        (two, [both], Wanted("routes", None, "port"), "no table 'routes'; its tables are MyIngress.ipv4_lpm"),
        (program(("dst", 32, RANGE)), [], WANTED, "dst is neither exact, lpm nor ternary"),
        (program(("dst", 256, EXACT)), [], WANTED, "dst has 256 bits; 1 to 128 will do"),
        (
            program(("dst", 32, LPM)),
            [entry(action(3), f1=(0, 8))],
            WANTED,
            "action MyIngress.flood of table MyIngress.ipv4_lpm has no parameter 'port'; it has group",
        ),
    ]:
        with pytest.raises(UnfitTableError) as refused:
            read(info, *entries, wanted=wanted)
        assert message in str(refused.value)
