/**
 * The Wormcast program as a pipeline of ONOS.
 */
package org.wormcast.onos.pipeconf;
