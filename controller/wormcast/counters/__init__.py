"""What ports carried and lost, from where a P4 program cannot see: the kernel, and wormcast-switch."""
