package org.wormcast.onos.fabric;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.TreeSet;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.onlab.packet.Ip4Address;
import org.onosproject.net.ConnectPoint;
import org.onosproject.net.Device;
import org.onosproject.net.DeviceId;
import org.onosproject.net.Host;
import org.onosproject.net.Link;
import org.onosproject.net.Port;
import org.onosproject.net.device.DeviceService;
import org.onosproject.net.host.HostService;
import org.onosproject.net.link.LinkService;
import org.onosproject.net.pi.service.PiPipeconfService;
import org.wormcast.onos.controller.ControllerException;
import org.wormcast.onos.controller.WormcastController;
import org.wormcast.onos.multicast.Member;
import org.wormcast.onos.multicast.MulticastClaims;
import org.wormcast.onos.pipeconf.PipeconfLoader;

/**
 * ONOS has the switches: it asks a Wormcast controller what they must hold, and sees to it by flow objectives.
 *
 * <p>What the planner calls a host is here each port that leads to no other switch. So hosts need not be known before
 * they can join or send, and unknown ones do not flood.
 */
final class Alone implements Synchronization {

    private static final Comparator<ConnectPoint> BY_PORT = Comparator
            .comparing((ConnectPoint port) -> port.deviceId().toString())
            .thenComparingLong(port -> port.port().toLong());

    private final ObjectMapper mapper = new ObjectMapper();
    private final WormcastController planner;
    private final MulticastClaims claims;
    private final PiPipeconfService pipeconfs;
    private final DeviceService deviceService;
    private final LinkService linkService;
    private final HostService hostService;
    private final EntryInstaller installer;
    private JsonNode asked;
    private JsonNode plan;

    Alone(WormcastController planner, MulticastClaims claims, PiPipeconfService pipeconfs, DeviceService deviceService,
          LinkService linkService, HostService hostService, EntryInstaller installer) {
        this.planner = planner;
        this.claims = claims;
        this.pipeconfs = pipeconfs;
        this.deviceService = deviceService;
        this.linkService = linkService;
        this.hostService = hostService;
        this.installer = installer;
    }

    @Override
    public boolean run() throws ControllerException {
        List<DeviceId> devices = devices();
        JsonNode network = network(devices);
        if (!network.equals(asked)) {
            plan = planner.plan(network);
            asked = network;
        }
        List<SwitchEntries> wanted = new ArrayList<>();
        for (JsonNode entries : plan.path("switches")) {
            wanted.add(SwitchEntries.read(devices.get(entries.path("id").asInt()), entries));
        }
        return installer.install(wanted);
    }

    @Override
    public void close() {
        asked = null;
    }

    // Devices with the Wormcast program, in an order that stays while they do.
    List<DeviceId> devices() {
        List<DeviceId> devices = new ArrayList<>();
        for (Device device : deviceService.getAvailableDevices()) {
            if (pipeconfs.getPipeconf(device.id())
                    .filter(pipeconf -> pipeconf.id().equals(PipeconfLoader.PIPECONF_ID)).isPresent()) {
                devices.add(device.id());
            }
        }
        devices.sort(Comparator.comparing(DeviceId::toString));
        return devices;
    }

    // The body of POST /v1/plan: switches are numbered as in the list, hosts as their ports are sorted.
    JsonNode network(List<DeviceId> devices) {
        Set<ConnectPoint> linked = new HashSet<>();
        ArrayNode links = links(devices, linked);
        ArrayNode switches = mapper.createArrayNode();
        ArrayNode hosts = mapper.createArrayNode();
        SortedMap<ConnectPoint, Integer> edge = new TreeMap<>(BY_PORT);
        for (DeviceId device : devices) {
            long ports = 0;
            for (Port port : deviceService.getPorts(device)) {
                if (port.number().isLogical()) {
                    continue;
                }
                ports = Math.max(ports, port.number().toLong() + 1);
                ConnectPoint point = new ConnectPoint(device, port.number());
                if (port.isEnabled() && !linked.contains(point)) {
                    edge.put(point, edge.size());
                }
            }
            int number = switches.size();
            switches.addObject().put("id", number).put("ports", ports);
        }
        int number = 0;
        for (Map.Entry<ConnectPoint, Integer> host : edge.entrySet()) {
            host.setValue(number);
            hosts.addObject().put("id", number).put("switch", devices.indexOf(host.getKey().deviceId()))
                    .put("port", host.getKey().port().toLong());
            number++;
        }
        ObjectNode network = mapper.createObjectNode();
        network.putObject("topology").<ObjectNode>set("switches", switches).<ObjectNode>set("links", links)
                .set("hosts", hosts);
        network.set("groups", groups(edge));
        return network.put("class_d", "wide");
    }

    private ArrayNode links(List<DeviceId> devices, Set<ConnectPoint> linked) {
        TreeMap<ConnectPoint, ConnectPoint> sorted = new TreeMap<>(BY_PORT);
        for (Link link : linkService.getActiveLinks()) {
            ConnectPoint low = BY_PORT.compare(link.src(), link.dst()) < 0 ? link.src() : link.dst();
            ConnectPoint high = low.equals(link.src()) ? link.dst() : link.src();
            if (devices.contains(low.deviceId()) && devices.contains(high.deviceId())) {
                sorted.put(low, high);
                linked.add(low);
                linked.add(high);
            }
        }
        ArrayNode links = mapper.createArrayNode();
        sorted.forEach((low, high) -> links.addObject()
                .put("a", devices.indexOf(low.deviceId())).put("a_port", low.port().toLong())
                .put("b", devices.indexOf(high.deviceId())).put("b_port", high.port().toLong()));
        return links;
    }

    private ArrayNode groups(Map<ConnectPoint, Integer> edge) {
        ArrayNode groups = mapper.createArrayNode();
        new TreeMap<>(claims.members()).forEach((Ip4Address address, Set<Member> members) -> {
            TreeSet<Integer> hosts = new TreeSet<>();
            for (Member member : members) {
                for (ConnectPoint port : ports(member)) {
                    if (edge.containsKey(port)) {
                        hosts.add(edge.get(port));
                    }
                }
            }
            if (!hosts.isEmpty()) {
                ArrayNode numbers = groups.addObject().put("class_d", address.toString()).putArray("members");
                hosts.forEach(numbers::add);
            }
        });
        return groups;
    }

    private Set<ConnectPoint> ports(Member member) {
        if (!member.isHost()) {
            return Set.of(member.port());
        }
        Set<ConnectPoint> ports = new HashSet<>();
        for (Host host : hostService.getHostsByMac(member.mac())) {
            host.locations().forEach(at -> ports.add(new ConnectPoint(at.elementId(), at.port())));
        }
        return ports;
    }
}
