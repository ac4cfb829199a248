package org.wormcast.onos.controller;

/**
 * The Wormcast controller is not there, or refuses.
 */
public class ControllerException extends Exception {

    /** Status of a controller that cannot be reached. */
    public static final int UNREACHABLE = 503;

    private static final long serialVersionUID = 1;

    private final int status;

    /**
     * A failure.
     *
     * @param status  of HTTP
     * @param message what was wrong and what would do
     */
    public ControllerException(int status, String message) {
        super(message);
        this.status = status;
    }

    /**
     * Status of HTTP that the controller answered with, or {@link #UNREACHABLE}.
     *
     * @return status
     */
    public int status() {
        return status;
    }
}
