"""Discovery of links and hosts by LLDP: frames in `lldp`, what they mean in `links` and `hosts`. Pure."""
