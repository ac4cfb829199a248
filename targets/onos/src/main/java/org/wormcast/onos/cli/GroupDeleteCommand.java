package org.wormcast.onos.cli;

import org.apache.karaf.shell.api.action.Argument;
import org.apache.karaf.shell.api.action.Command;
import org.apache.karaf.shell.api.action.lifecycle.Service;
import org.onosproject.cli.AbstractShellCommand;
import org.wormcast.onos.controller.ControllerException;
import org.wormcast.onos.fabric.FabricService;

/**
 * Deletes a group of the Wormcast controller.
 */
@Service
@Command(scope = "onos", name = "wormcast-group-delete", description = "Deletes a group of the Wormcast controller")
public class GroupDeleteCommand extends AbstractShellCommand {

    @Argument(index = 0, name = "group", description = "number or name", required = true)
    String group;

    @Override
    protected void doExecute() throws Exception {
        try {
            get(FabricService.class).delete(group);
        } catch (ControllerException e) {
            error("%s", e.getMessage());
        }
    }
}
