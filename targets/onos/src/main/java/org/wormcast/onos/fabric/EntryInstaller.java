package org.wormcast.onos.fabric;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.SortedSet;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;

import com.google.common.collect.Sets;
import org.onosproject.core.ApplicationId;
import org.onosproject.net.DeviceId;
import org.onosproject.net.PortNumber;
import org.onosproject.net.flow.DefaultTrafficSelector;
import org.onosproject.net.flow.DefaultTrafficTreatment;
import org.onosproject.net.flow.FlowEntry;
import org.onosproject.net.flow.FlowRule;
import org.onosproject.net.flow.FlowRuleService;
import org.onosproject.net.flow.TrafficSelector;
import org.onosproject.net.flow.TrafficTreatment;
import org.onosproject.net.flow.instructions.Instruction;
import org.onosproject.net.flow.instructions.Instructions.OutputInstruction;
import org.onosproject.net.flowobjective.DefaultForwardingObjective;
import org.onosproject.net.flowobjective.DefaultNextObjective;
import org.onosproject.net.flowobjective.DefaultNextTreatment;
import org.onosproject.net.flowobjective.FlowObjectiveService;
import org.onosproject.net.flowobjective.ForwardingObjective;
import org.onosproject.net.flowobjective.NextObjective;
import org.onosproject.net.flowobjective.Objective;
import org.onosproject.net.group.Group;
import org.onosproject.net.group.GroupBucket;
import org.onosproject.net.group.GroupService;
import org.wormcast.onos.pipeconf.PlannedRules;

/**
 * Makes flow objectives of the difference between what switches hold and what they must hold.
 *
 * <p>The order is that of the Wormcast controller: first replication groups only lose ports. When ONOS says that all
 * have done so, groups gain ports and entries come; then entries and groups that are not wanted go. So the ports that
 * are in use are at every moment those of one tree (ARCHITECTURE.md, Old and new trees side by side).
 */
final class EntryInstaller {

    private final ApplicationId app;
    private final FlowObjectiveService objectives;
    private final FlowRuleService flowRules;
    private final GroupService groups;
    /** Ids of next objectives, by device and number of the replication group. */
    private final Map<String, Integer> nextIds = new HashMap<>();

    EntryInstaller(ApplicationId app, FlowObjectiveService objectives, FlowRuleService flowRules,
                   GroupService groups) {
        this.app = app;
        this.objectives = objectives;
        this.flowRules = flowRules;
        this.groups = groups;
    }

    /**
     * One round.
     *
     * @param wanted what the devices must hold; others are left as they are
     * @return whether it waits for groups to shrink
     */
    boolean install(List<SwitchEntries> wanted) {
        boolean shrinking = false;
        for (SwitchEntries device : wanted) {
            shrinking |= shrink(device);
        }
        if (shrinking) {
            return true;
        }
        for (SwitchEntries device : wanted) {
            grow(device);
        }
        for (SwitchEntries device : wanted) {
            retire(device);
        }
        return false;
    }

    private boolean shrink(SwitchEntries wanted) {
        boolean shrinking = false;
        Map<Integer, SortedSet<Long>> held = held(wanted.device());
        for (Map.Entry<Integer, SortedSet<Long>> group : held.entrySet()) {
            SortedSet<Long> keep = wanted.multicast().getOrDefault(group.getKey(), new TreeSet<>());
            SortedSet<Long> lost = new TreeSet<>(Sets.difference(group.getValue(), keep));
            if (!lost.isEmpty() && !lost.equals(group.getValue())) {
                next(wanted.device(), group.getKey(), lost, Objective.Operation.REMOVE_FROM_EXISTING);
                shrinking = true;
            }
        }
        for (Group group : groups.getGroups(wanted.device(), app)) {
            shrinking |= group.state() == Group.GroupState.PENDING_UPDATE;
        }
        return shrinking;
    }

    private void grow(SwitchEntries wanted) {
        Map<Integer, SortedSet<Long>> held = held(wanted.device());
        wanted.multicast().forEach((mgid, ports) -> {
            SortedSet<Long> before = held.get(mgid);
            if (before == null) {
                next(wanted.device(), mgid, ports, Objective.Operation.ADD);
            } else if (!before.equals(ports)) {
                // Where no port is common, the group is not in use in between: it is set as a whole.
                SortedSet<Long> gained = new TreeSet<>(Sets.difference(ports, before));
                boolean apart = gained.size() == ports.size();
                next(wanted.device(), mgid, apart ? ports : gained,
                        apart ? Objective.Operation.MODIFY : Objective.Operation.ADD_TO_EXISTING);
            }
        });
        List<FlowEntry> entries = entries(wanted.device());
        for (SwitchEntries.Entry entry : wanted.entries()) {
            ForwardingObjective.Builder objective = forwarding(entry.selector(), entry.treatment(), entry.priority());
            FlowRule rule = PlannedRules.of(wanted.device(), objective.add());
            if (entries.stream().noneMatch(rule::exactMatch)) {
                objectives.forward(wanted.device(), objective.add());
            }
        }
    }

    private void retire(SwitchEntries wanted) {
        List<FlowRule> rules = wanted.entries().stream()
                .map(entry -> PlannedRules.of(wanted.device(),
                        forwarding(entry.selector(), entry.treatment(), entry.priority()).add()))
                .collect(Collectors.toList());
        for (FlowEntry entry : entries(wanted.device())) {
            if (!rules.contains(entry)) {
                objectives.forward(wanted.device(),
                        forwarding(entry.selector(), entry.treatment(), entry.priority()).remove());
            }
        }
        held(wanted.device()).forEach((mgid, ports) -> {
            if (!wanted.multicast().containsKey(mgid)) {
                next(wanted.device(), mgid, ports, Objective.Operation.REMOVE);
                nextIds.remove(wanted.device() + "/" + mgid);
            }
        });
    }

    private List<FlowEntry> entries(DeviceId device) {
        List<FlowEntry> entries = new ArrayList<>();
        for (FlowEntry entry : flowRules.getFlowEntries(device)) {
            boolean going = entry.state() == FlowEntry.FlowEntryState.PENDING_REMOVE
                    || entry.state() == FlowEntry.FlowEntryState.REMOVED;
            if (entry.appId() == app.id() && !going) {
                entries.add(entry);
            }
        }
        return entries;
    }

    private Map<Integer, SortedSet<Long>> held(DeviceId device) {
        Map<Integer, SortedSet<Long>> held = new TreeMap<>();
        for (Group group : groups.getGroups(device, app)) {
            if (group.state() == Group.GroupState.PENDING_DELETE) {
                continue;
            }
            SortedSet<Long> ports = new TreeSet<>();
            for (GroupBucket bucket : group.buckets().buckets()) {
                for (Instruction instruction : bucket.treatment().allInstructions()) {
                    ports.add(((OutputInstruction) instruction).port().toLong());
                }
            }
            held.put(group.id().id(), ports);
        }
        return held;
    }

    private void next(DeviceId device, int mgid, SortedSet<Long> ports, Objective.Operation operation) {
        String key = device + "/" + mgid;
        if (operation != Objective.Operation.ADD && !nextIds.containsKey(key)) {
            // Made before this application started: the next objective of that time is not known any more.
            SortedSet<Long> before = held(device).get(mgid);
            next(device, mgid, before, Objective.Operation.ADD);
        }
        NextObjective.Builder objective = DefaultNextObjective.builder()
                .withId(nextIds.computeIfAbsent(key, same -> objectives.allocateNextId()))
                .withType(NextObjective.Type.BROADCAST)
                .withMeta(DefaultTrafficSelector.builder().matchMetadata(mgid).build())
                .fromApp(app);
        ports.forEach(port -> objective.addTreatment(DefaultNextTreatment.of(
                DefaultTrafficTreatment.builder().setOutput(PortNumber.portNumber(port)).build())));
        objectives.next(device, with(objective, operation));
    }

    private static NextObjective with(NextObjective.Builder objective, Objective.Operation operation) {
        switch (operation) {
            case ADD:
                return objective.add();
            case ADD_TO_EXISTING:
                return objective.addToExisting();
            case REMOVE_FROM_EXISTING:
                return objective.removeFromExisting();
            case MODIFY:
                return objective.modify();
            case REMOVE:
                return objective.remove();
            default:
                throw new IllegalArgumentException(operation.toString());
        }
    }

    private ForwardingObjective.Builder forwarding(TrafficSelector selector, TrafficTreatment treatment, int priority) {
        return DefaultForwardingObjective.builder().withSelector(selector).withTreatment(treatment)
                .withPriority(priority).withFlag(ForwardingObjective.Flag.VERSATILE).makePermanent().fromApp(app);
    }
}
