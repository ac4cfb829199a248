"""Labs: things that one should have seen once, one command each. `switch/labs/run` lists them."""
