"""AgentDirectory: where agents attach and get their plans (hostagent/proto/agent.proto)."""
