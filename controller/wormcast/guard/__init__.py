"""The guard at the edge: what the operator asks for, REST and the command."""
