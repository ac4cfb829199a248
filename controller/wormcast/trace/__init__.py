"""Traces of worms: who is asked, what came, REST and the command."""
