"""Messages and service of hostagent/proto/agent.proto; `generate_rpc.py` writes the modules."""
