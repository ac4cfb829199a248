"""Wormcast on the wire: the Python side of wire/SPEC.md.

`codec` and `tree` are pure functions over bytes; `layers` puts them on Scapy. `ids` holds
the numbers, tested equal to their home in p4src/shared.
"""
