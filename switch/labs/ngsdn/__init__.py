"""What a topology of ngsdn-tutorial needs to run on wormcast-switch."""
