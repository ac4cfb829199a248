"""The controller proper: `controller` joins discovery, planning, switches and agents."""
