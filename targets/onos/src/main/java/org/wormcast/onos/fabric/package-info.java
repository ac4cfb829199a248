/**
 * The fabric that this application looks after: its configuration, hosts, groups and, where ONOS is the only
 * controller of the switches, their entries.
 */
package org.wormcast.onos.fabric;
