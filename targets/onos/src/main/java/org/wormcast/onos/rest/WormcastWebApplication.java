package org.wormcast.onos.rest;

import java.util.Set;

import org.onlab.rest.AbstractWebApplication;

/**
 * What REST of the application is made of.
 */
public class WormcastWebApplication extends AbstractWebApplication {
    @Override
    public Set<Class<?>> getClasses() {
        return getClasses(WormcastResource.class);
    }
}
