"""Packet or wormhole mode of the switches: what the operator asks for, REST and the command."""
