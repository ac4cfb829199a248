package org.wormcast.onos.cli;

import java.util.List;

import com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.karaf.shell.api.action.Command;
import org.apache.karaf.shell.api.action.lifecycle.Service;
import org.onosproject.cli.AbstractShellCommand;
import org.wormcast.onos.controller.FabricHost;
import org.wormcast.onos.controller.Place;
import org.wormcast.onos.fabric.FabricService;
import org.wormcast.onos.fabric.Views;

/**
 * Lists the hosts of the Wormcast controller.
 */
@Service
@Command(scope = "onos", name = "wormcast-hosts", description = "Lists the hosts of the Wormcast controller")
public class HostsCommand extends AbstractShellCommand {
    @Override
    protected void doExecute() throws Exception {
        List<FabricHost> hosts = get(FabricService.class).hosts();
        if (outputJson()) {
            ArrayNode list = mapper().createArrayNode();
            hosts.forEach(host -> list.add(Views.show(mapper(), host)));
            print("%s", list);
            return;
        }
        hosts.forEach(host -> print("id=%d, name=%s, state=%s, port=%s, mac=%s", host.id(), host.name(), host.state(),
                host.place().map(Place::toString).orElse("-"), host.mac().map(Object::toString).orElse("-")));
    }
}
