package org.wormcast.onos.cli;

import java.util.List;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.karaf.shell.api.action.Argument;
import org.apache.karaf.shell.api.action.Command;
import org.apache.karaf.shell.api.action.Option;
import org.apache.karaf.shell.api.action.lifecycle.Service;
import org.onosproject.cli.AbstractShellCommand;
import org.wormcast.onos.controller.ControllerException;
import org.wormcast.onos.controller.FabricGroup;
import org.wormcast.onos.fabric.FabricService;

/**
 * Makes a group at the Wormcast controller.
 */
@Service
@Command(scope = "onos", name = "wormcast-group-add", description = "Makes a group at the Wormcast controller")
public class GroupAddCommand extends AbstractShellCommand {

    @Argument(index = 0, name = "members", description = "hosts of the Wormcast controller, by number or name",
            required = true, multiValued = true)
    List<String> members;

    @Option(name = "--name", description = "name of the group; group-<number> if absent", required = false)
    String name;

    @Option(name = "--scheme", description = "how its messages travel; the controller's default if absent",
            required = false)
    String scheme;

    @Option(name = "--address", description = "IP multicast address that it carries", required = false)
    String address;

    @Override
    protected void doExecute() throws Exception {
        ObjectNode body = mapper().createObjectNode();
        ArrayNode list = body.putArray("members");
        for (String member : members) {
            if (member.matches("[0-9]{1,9}")) {
                list.add(Integer.parseInt(member));
            } else {
                list.add(member);
            }
        }
        put(body, "name", name);
        put(body, "scheme", scheme);
        put(body, "class_d", address);
        try {
            FabricGroup group = get(FabricService.class).create(body);
            print("%d", group.id());
        } catch (ControllerException e) {
            error("%s", e.getMessage());
        }
    }

    private static void put(ObjectNode body, String field, String value) {
        if (value != null) {
            body.put(field, value);
        }
    }
}
