package org.wormcast.onos.cli;

import org.apache.karaf.shell.api.action.Command;
import org.apache.karaf.shell.api.action.lifecycle.Service;
import org.onosproject.cli.AbstractShellCommand;
import org.wormcast.onos.fabric.FabricService;

/**
 * Prints what the Wormcast application does.
 */
@Service
@Command(scope = "onos", name = "wormcast-status",
        description = "Prints mode, controller, members by address, and the last error of Wormcast")
public class StatusCommand extends AbstractShellCommand {
    @Override
    protected void doExecute() throws Exception {
        print("%s", outputJson() ? get(FabricService.class).status()
                : get(FabricService.class).status().toPrettyString());
    }
}
