"""Real agents for tests, joined by a small forwarder and told what to do by a small controller."""
