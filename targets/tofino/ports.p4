// Purpose: from device ports to the ports of CONTRACT.md and back. Only here, in replicas of
//          multicast groups and in the parser are ports those of the device.
// Cost:    one stage in ingress before all that looks at the port, one behind all that chooses
//          one; one in egress.

#ifndef WORMCAST_PORTS_P4
#define WORMCAST_PORTS_P4

// Reads:   ingress_port, hdr.recirculated, global_tstamp. Writes: hdr.bridge.entry_port, .entered_at.
// Tables:  entry_ports.
control EntryPort(inout ingress_headers_t hdr,
                  in ingress_intrinsic_metadata_t ig_intr_md,
                  in ingress_intrinsic_metadata_from_parser_t ig_prsr_md) {
    @name(".ingress.entry_port") @id(0x01000080)
    action entry_port(port_t port) {
        hdr.bridge.entry_port = (bit<16>)port;
        hdr.bridge.packet_in = port ++ 7w0;
    }

    @name(".ingress.entry_ports") @id(0x02000080)
    table entry_ports {
        key = { ig_intr_md.ingress_port: exact @name("device_port"); }
        actions = { entry_port; }
        const default_action = entry_port(DROP_PORT);
        size = (int)DEVICE_PORTS_SIZE;
    }

    apply {
        if (hdr.recirculated.isValid()) {
            hdr.bridge.entry_port = hdr.recirculated.entry_port;
            hdr.bridge.packet_in = 0; // a worm, which no controller sees
            hdr.bridge.entered_at = hdr.recirculated.entered_at;
        } else {
            hdr.bridge.entered_at = ig_prsr_md.global_tstamp[39:8];
            entry_ports.apply();
        }
    }
}

// Reads:   meta.out_port. Writes: ucast_egress_port; meta.drop_reason.
// Tables:  device_ports.
control DevicePort(inout ingress_metadata_t meta,
                   inout ingress_intrinsic_metadata_for_tm_t ig_tm_md) {
    @name(".ingress.device_port") @id(0x01000081)
    action device_port(PortId_t device) {
        ig_tm_md.ucast_egress_port = device;
    }

    @name(".ingress.device_unknown") @id(0x01000082)
    action device_unknown() {
        meta.drop_reason = drop_reason_t.PORT_UNKNOWN;
    }

    @name(".ingress.device_ports") @id(0x02000081)
    table device_ports {
        key = { meta.out_port: exact @name("port"); }
        actions = { device_port; @defaultonly device_unknown; }
        const default_action = device_unknown();
        size = (int)DEVICE_PORTS_SIZE;
    }

    apply {
        device_ports.apply();
    }
}

// Reads:   egress_port. Writes: meta.exit_port.
// Tables:  exit_ports.
control ExitPort(inout egress_metadata_t meta, in egress_intrinsic_metadata_t eg_intr_md) {
    @name(".egress.exit_port") @id(0x01000083)
    action exit_port(port_t port) {
        meta.exit_port = port;
    }

    @name(".egress.exit_ports") @id(0x02000082)
    table exit_ports {
        key = { eg_intr_md.egress_port: exact @name("device_port"); }
        actions = { exit_port; }
        const default_action = exit_port(DROP_PORT);
        size = (int)DEVICE_PORTS_SIZE;
    }

    apply {
        exit_ports.apply();
    }
}

#endif
