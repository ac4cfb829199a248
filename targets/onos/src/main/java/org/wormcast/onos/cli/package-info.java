/**
 * Commands of the ONOS shell.
 */
package org.wormcast.onos.cli;
