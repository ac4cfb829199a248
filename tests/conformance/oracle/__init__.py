"""The wire once more, in Python: plain codecs and Scapy layers, written from wire/SPEC.md.

They know nothing of the Rust codec, so that the vectors hold one against the other.
"""
