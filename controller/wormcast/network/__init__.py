"""What discovery and operators say of a network: the words that a plan is made from."""
