"""Two switches are given the same program, the same entries and the same packets, made up from
the program; what comes out must be the same, bit for bit.

`python -m differential --help` in the directory above. The generator (`program`, `bits`, `values`,
`packets`, `entries`, `checksums`) is pure: a seed gives the same cases on every machine.
`switches` runs them, `compare` says what differs, `shrink` makes it small.
"""
