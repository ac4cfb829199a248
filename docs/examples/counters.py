"""What left the switches, and what they dropped and why: from the controller's REST API."""

import os

import httpx

address = os.environ["WORMCAST_API"]
path = address.removeprefix("unix:")
transport = httpx.HTTPTransport(uds=path) if path != address else None
base = "http://controller/v1" if transport else f"http://{address}/v1"
total = 0
with httpx.Client(transport=transport, base_url=base) as controller:
    for switch in controller.get("switches").raise_for_status().json()["switches"]:
        counters = controller.get(f"switches/{switch['id']}/counters").raise_for_status().json()
        sent = sum(port["egress"]["bytes"] for port in counters["ports"])
        total += sent
        print(f"switch {switch['id']}: {sent} bytes sent, dropped: {counters['drops'] or 'nothing'}")
print(f"all switches: {total} bytes sent")
