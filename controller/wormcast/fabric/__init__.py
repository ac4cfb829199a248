"""The pure core of the controller: topology and groups in, desired state out.

`plan(topology, groups, ...)` says what every switch and every agent must have;
`diff(desired, actual)` says which updates lead there, in an order that keeps
running transfers alive. Nothing here does IO or reads a clock.
"""
