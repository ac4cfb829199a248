"""A real switch in a network namespace of its own, driven through P4Runtime and raw sockets.

`host` runs in pytest and talks over pipes to `worker`, which is the first process of the
namespace: when it ends, for whatever reason, the kernel takes the switch, the links and
everything else in there with it.
"""
