/**
 * REST of the application, at /onos/wormcast.
 */
package org.wormcast.onos.rest;
