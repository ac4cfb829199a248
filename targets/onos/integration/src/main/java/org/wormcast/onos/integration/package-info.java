/**
 * Stands in for what Maven Central does not have of ONOS.
 */
package org.wormcast.onos.integration;
