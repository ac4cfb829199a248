package org.wormcast.onos.pipeconf;

import static java.lang.String.format;
import static org.onosproject.net.flowobjective.ObjectiveError.BADPARAMS;
import static org.onosproject.net.flowobjective.ObjectiveError.UNSUPPORTED;
import static org.wormcast.onos.pipeconf.P4Names.CLASS_D;
import static org.wormcast.onos.pipeconf.P4Names.EDGE_PORTS;
import static org.wormcast.onos.pipeconf.P4Names.EGRESS_PORT;
import static org.wormcast.onos.pipeconf.P4Names.GROUP;
import static org.wormcast.onos.pipeconf.P4Names.GROUPS;
import static org.wormcast.onos.pipeconf.P4Names.INGRESS_PORT;
import static org.wormcast.onos.pipeconf.P4Names.IPV4_DST;
import static org.wormcast.onos.pipeconf.P4Names.MGID_MAX;
import static org.wormcast.onos.pipeconf.P4Names.PORT;
import static org.wormcast.onos.pipeconf.P4Names.PORTS;
import static org.wormcast.onos.pipeconf.P4Names.PORT_ROLES;
import static org.wormcast.onos.pipeconf.P4Names.PORT_SET;
import static org.wormcast.onos.pipeconf.P4Names.TREE_SETS;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import org.onlab.packet.IpPrefix;
import org.onosproject.core.ApplicationId;
import org.onosproject.net.DeviceId;
import org.onosproject.net.PortNumber;
import org.onosproject.net.flow.DefaultFlowRule;
import org.onosproject.net.flow.DefaultTrafficSelector;
import org.onosproject.net.flow.DefaultTrafficTreatment;
import org.onosproject.net.flow.FlowRule;
import org.onosproject.net.flow.TrafficSelector;
import org.onosproject.net.flow.TrafficTreatment;
import org.onosproject.net.flow.criteria.Criterion;
import org.onosproject.net.flow.criteria.IPCriterion;
import org.onosproject.net.flow.criteria.MetadataCriterion;
import org.onosproject.net.flow.criteria.PiCriterion;
import org.onosproject.net.flow.instructions.Instruction;
import org.onosproject.net.flow.instructions.Instructions.OutputInstruction;
import org.onosproject.net.flowobjective.DefaultNextTreatment;
import org.onosproject.net.flowobjective.ForwardingObjective;
import org.onosproject.net.flowobjective.NextObjective;
import org.onosproject.net.flowobjective.NextTreatment;
import org.onosproject.net.group.DefaultGroupBucket;
import org.onosproject.net.group.DefaultGroupDescription;
import org.onosproject.net.group.DefaultGroupKey;
import org.onosproject.net.group.GroupBucket;
import org.onosproject.net.group.GroupBuckets;
import org.onosproject.net.group.GroupDescription;
import org.onosproject.net.group.GroupKey;
import org.onosproject.net.pi.model.PiMatchFieldId;
import org.onosproject.net.pi.model.PiTableId;
import org.onosproject.net.pi.runtime.PiAction;

/**
 * Objectives as flow rules and replication groups of the Wormcast program.
 */
final class Translator {

    /** Every table has one key, of its own: an objective says by its key which table it means. */
    private static final Map<PiMatchFieldId, PiTableId> TABLES = ImmutableMap.<PiMatchFieldId, PiTableId>builder()
            .put(PORT, PORTS)
            .put(INGRESS_PORT, PORT_ROLES)
            .put(PORT_SET, TREE_SETS)
            .put(GROUP, GROUPS)
            .put(IPV4_DST, CLASS_D)
            .put(EGRESS_PORT, EDGE_PORTS)
            .build();
    private static final Set<Criterion.Type> IGNORED = Set.of(Criterion.Type.ETH_TYPE, Criterion.Type.DUMMY);
    private static final IpPrefix CLASS_D_ADDRESSES = IpPrefix.valueOf("224.0.0.0/4");
    private static final int GROUP_NUMBER_BROADCAST = 0xff;
    /** Of entries that several addresses share, whatever the priorities of their objectives are. */
    private static final int SHARED_PRIORITY = 1;

    private final DeviceId device;

    Translator(DeviceId device) {
        this.device = device;
    }

    /**
     * The flow rules of a forwarding objective.
     *
     * <p>Its selector has a key of the program, or an IP multicast address; none at all means the default action of
     * the table for TREE worms. Its treatment is an action of the program, or there is a next objective, whose
     * replication group has the number {@code mgid}. An address with a next objective becomes two rules: from the
     * address to a group number, which is that of the replication group, and from there to the replication group.
     *
     * @param objective what is asked for
     * @param mgid      replication group of its next objective, if it has one
     * @return rules
     * @throws ObjectiveRefused if the program cannot do it
     */
    List<FlowRule> rules(ForwardingObjective objective, OptionalInt mgid) throws ObjectiveRefused {
        List<Criterion> criteria = objective.selector().criteria().stream()
                .filter(criterion -> !IGNORED.contains(criterion.type()))
                .collect(Collectors.toList());
        if (criteria.size() > 1) {
            throw new ObjectiveRefused(UNSUPPORTED, "several criteria " + criteria + "; possible: one key");
        }
        if (criteria.isEmpty()) {
            return ImmutableList.of(rule(objective, TREE_SETS, DefaultTrafficSelector.emptySelector(),
                    treatment(objective, TREE_SETS, mgid)));
        }
        Criterion criterion = criteria.get(0);
        TrafficSelector selector = DefaultTrafficSelector.builder().add(criterion).build();
        PiTableId table = table(criterion);
        if (!table.equals(CLASS_D) || mgid.isEmpty()) {
            return ImmutableList.of(rule(objective, table, selector, treatment(objective, table, mgid)));
        }
        int number = mgid.getAsInt();
        if (number == GROUP_NUMBER_BROADCAST) {
            throw new ObjectiveRefused(BADPARAMS, "replication group 255 is no group number");
        }
        return ImmutableList.of(rule(objective, CLASS_D, selector, does(WormcastInterpreter.enterGroup(number))),
                groupRule(objective.appId(), number));
    }

    /**
     * The entry that leads from a group number to the replication group of this number. All addresses with the same
     * next objective share it.
     *
     * @param app    whose it is
     * @param number of both
     * @return rule
     */
    FlowRule groupRule(ApplicationId app, int number) {
        TrafficSelector group = DefaultTrafficSelector.builder()
                .matchPi(PiCriterion.builder().matchExact(GROUP, (short) number).build()).build();
        return DefaultFlowRule.builder().forDevice(device).forTable(GROUPS).fromApp(app).withSelector(group)
                .withTreatment(does(WormcastInterpreter.replicate(number))).withPriority(SHARED_PRIORITY)
                .makePermanent().build();
    }

    /**
     * The replication group of a next objective: one copy for each port.
     *
     * @param objective what is asked for
     * @param mgid      number of the replication group
     * @return description of the group
     * @throws ObjectiveRefused if the program cannot do it
     */
    GroupDescription group(NextObjective objective, int mgid) throws ObjectiveRefused {
        return new DefaultGroupDescription(device, GroupDescription.Type.ALL, buckets(objective), key(mgid), mgid,
                objective.appId());
    }

    /**
     * The buckets of a next objective, in ascending order of ports.
     *
     * @param objective what is asked for
     * @return a bucket for each port
     * @throws ObjectiveRefused if the program cannot do it
     */
    GroupBuckets buckets(NextObjective objective) throws ObjectiveRefused {
        if (objective.type() != NextObjective.Type.BROADCAST) {
            throw new ObjectiveRefused(UNSUPPORTED, "next objective " + objective.type() + "; possible: BROADCAST");
        }
        Set<Long> ports = new TreeSet<>();
        for (NextTreatment next : objective.nextTreatments()) {
            List<Instruction> instructions = ((DefaultNextTreatment) next).treatment().allInstructions();
            if (instructions.size() != 1 || !(instructions.get(0) instanceof OutputInstruction)
                    || ((OutputInstruction) instructions.get(0)).port().isLogical()) {
                throw new ObjectiveRefused(UNSUPPORTED, format("bucket %s; possible: one OUTPUT to a port number",
                        instructions));
            }
            ports.add(((OutputInstruction) instructions.get(0)).port().toLong());
        }
        List<GroupBucket> buckets = new ArrayList<>();
        for (long port : ports) {
            buckets.add(DefaultGroupBucket.createAllGroupBucket(
                    DefaultTrafficTreatment.builder().setOutput(PortNumber.portNumber(port)).build()));
        }
        return new GroupBuckets(buckets);
    }

    /**
     * The number of a next objective's replication group: what its meta says as METADATA, else its id.
     *
     * @param objective next objective
     * @return number
     * @throws ObjectiveRefused if it is out of bounds
     */
    static int mgid(NextObjective objective) throws ObjectiveRefused {
        Criterion meta = objective.meta() == null ? null : objective.meta().getCriterion(Criterion.Type.METADATA);
        long number = meta == null ? objective.id() : ((MetadataCriterion) meta).metadata();
        if (number < 1 || number > MGID_MAX) {
            throw new ObjectiveRefused(BADPARAMS, format("replication group %d; possible: 1 to %d, as id of the next "
                    + "objective or as METADATA of its meta", number, MGID_MAX));
        }
        return (int) number;
    }

    /**
     * What ONOS knows a replication group by.
     *
     * @param mgid its number
     * @return key
     */
    static GroupKey key(int mgid) {
        return new DefaultGroupKey(("wormcast:" + mgid).getBytes(StandardCharsets.UTF_8));
    }

    /**
     * What a next objective leaves behind for forwarding objectives.
     *
     * @param mgid number of its replication group
     * @return bytes
     */
    static byte[] encode(int mgid) {
        return ByteBuffer.allocate(Integer.BYTES).putInt(mgid).array();
    }

    /**
     * The number in what a next objective left behind.
     *
     * @param data bytes of {@link #encode}
     * @return number
     */
    static int decode(byte[] data) {
        return ByteBuffer.wrap(data).getInt();
    }

    private static PiTableId table(Criterion criterion) throws ObjectiveRefused {
        switch (criterion.type()) {
            case IN_PORT:
                return PORT_ROLES;
            case IPV4_DST:
                IpPrefix address = ((IPCriterion) criterion).ip();
                if (!CLASS_D_ADDRESSES.contains(address)) {
                    throw new ObjectiveRefused(UNSUPPORTED, address + " is no IP multicast address");
                }
                return CLASS_D;
            case PROTOCOL_INDEPENDENT:
                PiTableId table = ((PiCriterion) criterion).fieldMatches().size() > 1 ? null
                        : TABLES.get(((PiCriterion) criterion).fieldMatches().iterator().next().fieldId());
                if (table == null) {
                    throw unknown(criterion);
                }
                return table;
            default:
                throw unknown(criterion);
        }
    }

    private static ObjectiveRefused unknown(Criterion criterion) {
        return new ObjectiveRefused(UNSUPPORTED, "criterion " + criterion
                + "; possible: IPV4_DST, IN_PORT, or one of the fields " + TABLES.keySet());
    }

    private static TrafficTreatment treatment(ForwardingObjective objective, PiTableId table, OptionalInt mgid)
            throws ObjectiveRefused {
        if (mgid.isPresent()) {
            if (!table.equals(GROUPS) && !table.equals(TREE_SETS)) {
                throw new ObjectiveRefused(UNSUPPORTED, "a next objective in table " + table);
            }
            return does(WormcastInterpreter.replicate(mgid.getAsInt()));
        }
        return Optional.ofNullable(objective.treatment()).filter(given -> !given.allInstructions().isEmpty())
                .orElseThrow(() -> new ObjectiveRefused(BADPARAMS, "neither treatment nor next objective"));
    }

    private static TrafficTreatment does(PiAction action) {
        return DefaultTrafficTreatment.builder().piTableAction(action).build();
    }

    private FlowRule rule(ForwardingObjective objective, PiTableId table, TrafficSelector selector,
                          TrafficTreatment treatment) {
        ApplicationId app = objective.appId();
        FlowRule.Builder rule = DefaultFlowRule.builder().forDevice(device).forTable(table).fromApp(app)
                .withSelector(selector).withTreatment(treatment).withPriority(objective.priority());
        return (objective.permanent() ? rule.makePermanent() : rule.makeTemporary(objective.timeout())).build();
    }
}
