package org.wormcast.onos.integration;

import org.onosproject.net.driver.AbstractIndependentDriverLoader;
import org.osgi.service.component.annotations.Component;

/**
 * The default driver, and one for devices that are not there.
 */
@Component(immediate = true)
public class Drivers extends AbstractIndependentDriverLoader {

    /** Reads the drivers of this bundle. */
    public Drivers() {
        super("/drivers.xml");
    }
}
