package org.wormcast.onos.multicast;

/**
 * Who says that a host wants packets. A host is a member for as long as one of them says so.
 */
public enum Source {
    /** ONOS's MulticastRouteService. */
    ROUTE,
    /** IGMP reports that reached ONOS as packets. */
    IGMP,
    /** IGMP reports that reached the Wormcast controller. */
    FABRIC
}
