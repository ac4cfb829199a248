"""Labs: things that one should have seen once, one command each. `labs/run` lists them."""
