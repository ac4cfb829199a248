"""The Tofino program of targets/tofino, run from its sources.

Nothing here has to do with p4c: the sources are read by a parser of our own (`syntax`), what they
say is carried out by `machine`, and `chip` is the switch around them: parsers, checksum engines,
replication, resubmission, recirculation, as public documents describe them.
"""
