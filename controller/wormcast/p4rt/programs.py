"""Names of the data plane's programs, one for each kind of switch."""

V1MODEL, TOFINO, TOFINO2 = "v1model", "tofino", "tofino2"
PROGRAMS = (V1MODEL, TOFINO, TOFINO2)
"""What all switches of a fabric run: that for wormcast-switch and BMv2, or that for a chip."""
