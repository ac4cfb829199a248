package org.wormcast.onos.pipeconf;

import org.onosproject.net.flowobjective.ObjectiveError;

/**
 * An objective that the pipeline does not take.
 */
class ObjectiveRefused extends Exception {

    private static final long serialVersionUID = 1;

    private final ObjectiveError error;

    ObjectiveRefused(ObjectiveError error, String message) {
        super(message);
        this.error = error;
    }

    ObjectiveError error() {
        return error;
    }
}
