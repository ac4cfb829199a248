package org.wormcast.onos.fabric;

import org.wormcast.onos.controller.ControllerException;

/**
 * Brings what is in step with what should be, for one mode.
 */
interface Synchronization {

    /**
     * One round.
     *
     * @return whether another one should follow soon, because this one waits for something
     * @throws ControllerException if the Wormcast controller does not answer, or refuses something
     */
    boolean run() throws ControllerException;

    /**
     * Ends it: what it holds in ONOS goes, what it made in the fabric stays as it is.
     */
    void close();
}
