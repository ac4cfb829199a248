/**
 * Who wants the packets of which IP multicast address, and the groups that follow from it.
 */
package org.wormcast.onos.multicast;
