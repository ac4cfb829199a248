package org.wormcast.onos.fabric;

import java.util.Locale;

/**
 * Who programs the switches.
 */
public enum Mode {
    /** The Wormcast controller; this application makes its groups. */
    BESIDE,
    /** ONOS, through the pipeconf; a Wormcast controller only plans. */
    ALONE;

    /**
     * As the configuration has it.
     *
     * @return name
     */
    public String text() {
        return name().toLowerCase(Locale.ROOT);
    }
}
