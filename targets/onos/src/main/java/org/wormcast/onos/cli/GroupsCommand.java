package org.wormcast.onos.cli;

import java.util.List;

import com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.karaf.shell.api.action.Command;
import org.apache.karaf.shell.api.action.lifecycle.Service;
import org.onosproject.cli.AbstractShellCommand;
import org.wormcast.onos.controller.FabricGroup;
import org.wormcast.onos.fabric.FabricService;
import org.wormcast.onos.fabric.Views;

/**
 * Lists the groups of the Wormcast controller.
 */
@Service
@Command(scope = "onos", name = "wormcast-groups", description = "Lists the groups of the Wormcast controller")
public class GroupsCommand extends AbstractShellCommand {
    @Override
    protected void doExecute() throws Exception {
        List<FabricGroup> groups = get(FabricService.class).groups();
        if (outputJson()) {
            ArrayNode list = mapper().createArrayNode();
            groups.forEach(group -> list.add(Views.show(mapper(), group)));
            print("%s", list);
            return;
        }
        groups.forEach(group -> print("id=%d, name=%s, scheme=%s, address=%s, members=%s", group.id(), group.name(),
                group.scheme(), group.address().map(Object::toString).orElse("-"), group.members()));
    }
}
