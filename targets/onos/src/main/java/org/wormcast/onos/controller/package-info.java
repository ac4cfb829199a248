/**
 * The Wormcast controller, asked over REST.
 */
package org.wormcast.onos.controller;
