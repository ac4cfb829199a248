package org.wormcast.onos.fabric;

import static org.hamcrest.MatcherAssert.assertThat;
import static org.hamcrest.Matchers.is;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;

import com.fasterxml.jackson.databind.ObjectMapper;
import org.junit.Test;
import org.onosproject.TestApplicationId;
import org.onosproject.core.ApplicationId;
import org.onosproject.core.GroupId;
import org.onosproject.net.DeviceId;
import org.onosproject.net.flow.DefaultFlowEntry;
import org.onosproject.net.flow.FlowEntry;
import org.onosproject.net.flow.FlowRule;
import org.onosproject.net.flow.FlowRuleServiceAdapter;
import org.onosproject.net.flow.criteria.Criterion;
import org.onosproject.net.flow.criteria.MetadataCriterion;
import org.onosproject.net.flow.instructions.Instructions.OutputInstruction;
import org.onosproject.net.flowobjective.DefaultNextTreatment;
import org.onosproject.net.flowobjective.FlowObjectiveServiceAdapter;
import org.onosproject.net.flowobjective.ForwardingObjective;
import org.onosproject.net.flowobjective.NextObjective;
import org.onosproject.net.flowobjective.Objective;
import org.onosproject.net.group.DefaultGroup;
import org.onosproject.net.group.DefaultGroupBucket;
import org.onosproject.net.group.Group;
import org.onosproject.net.group.GroupBucket;
import org.onosproject.net.group.GroupBuckets;
import org.onosproject.net.group.GroupDescription;
import org.onosproject.net.group.GroupServiceAdapter;
import org.wormcast.onos.pipeconf.PlannedRules;

/**
 * The difference between plan and device becomes objectives, in safe order.
 */
public class EntryInstallerTest {

    private static final DeviceId DEVICE = DeviceId.deviceId("device:s1");
    private static final ApplicationId APP = new TestApplicationId("org.wormcast.onos");

    /** Operations on replication groups, in order. */
    private final List<String> log = new ArrayList<>();
    private final Map<Integer, DefaultGroup> groups = new TreeMap<>();
    private final List<FlowEntry> entries = new ArrayList<>();
    private boolean isSlow;

    private final EntryInstaller installer = new EntryInstaller(APP, new FlowObjectiveServiceAdapter() {
        private int id;

        @Override
        public int allocateNextId() {
            return id++;
        }

        @Override
        public void forward(DeviceId device, ForwardingObjective objective) {
            FlowRule rule = PlannedRules.of(device, objective);
            log.add((objective.op() == Objective.Operation.ADD ? "+" : "-") + rule.table());
            entries.remove(new DefaultFlowEntry(rule));
            if (objective.op() == Objective.Operation.ADD) {
                entries.add(new DefaultFlowEntry(rule, FlowEntry.FlowEntryState.ADDED));
            }
        }

        @Override
        public void next(DeviceId device, NextObjective objective) {
            change(objective);
        }
    }, new FlowRuleServiceAdapter() {
        @Override
        public Iterable<FlowEntry> getFlowEntries(DeviceId device) {
            return new ArrayList<>(entries);
        }
    }, new GroupServiceAdapter() {
        @Override
        public Iterable<Group> getGroups(DeviceId device, ApplicationId app) {
            return new ArrayList<>(groups.values());
        }
    });

    private void change(NextObjective objective) {
        int mgid = (int) ((MetadataCriterion) objective.meta().getCriterion(Criterion.Type.METADATA)).metadata();
        List<GroupBucket> given = objective.nextTreatments().stream()
                .map(next -> DefaultGroupBucket.createAllGroupBucket(((DefaultNextTreatment) next).treatment()))
                .collect(Collectors.toList());
        List<GroupBucket> buckets = new ArrayList<>();
        if (groups.containsKey(mgid)) {
            buckets.addAll(groups.get(mgid).buckets().buckets());
        }
        switch (objective.op()) {
            case ADD:
            case MODIFY:
                buckets.clear();
                buckets.addAll(given);
                break;
            case ADD_TO_EXISTING:
                buckets.addAll(given);
                break;
            case REMOVE_FROM_EXISTING:
                buckets.removeAll(given);
                break;
            default:
                groups.remove(mgid);
        }
        log.add(objective.op() + " " + mgid + ports(given));
        if (objective.op() != Objective.Operation.REMOVE) {
            DefaultGroup group =
                    new DefaultGroup(new GroupId(mgid), DEVICE, GroupDescription.Type.ALL, new GroupBuckets(buckets));
            group.setState(isSlow ? Group.GroupState.PENDING_UPDATE : Group.GroupState.ADDED);
            groups.put(mgid, group);
        }
    }

    private static List<Long> ports(List<GroupBucket> buckets) {
        return buckets.stream().flatMap(bucket -> bucket.treatment().allInstructions().stream())
                .map(output -> ((OutputInstruction) output).port()
                        .toLong()).collect(Collectors.toList());
    }

    private boolean install(String plan) throws Exception {
        log.clear();
        return installer.install(List.of(SwitchEntries.read(DEVICE, new ObjectMapper().readTree(plan))));
    }

    private static String plan(String multicast, String... numbers) {
        List<String> entries = new ArrayList<>();
        for (String number : numbers) {
            entries.add("{\"table\": \"ingress.groups\", \"match\": {\"group\": " + number + "}, \"priority\": 0, "
                    + "\"action\": \"ingress.replicate\", \"parameters\": {\"mgid\": 16384}}");
        }
        return "{\"entries\": " + entries + ", \"multicast\": [" + multicast + "], \"defaults\": [{\"table\": "
                + "\"ingress.tree_sets\", \"action\": \"ingress.replicate_filtered\", \"parameters\": "
                + "{\"low\": 340282366920938463463374607431768211455, \"high\": 0}}]}";
    }

    private static String group(int mgid, String ports) {
        return "{\"mgid\": " + mgid + ", \"ports\": [" + ports + "]}";
    }

    @Test
    public void whatIsMissingIsAddedOnceAndWhatIsNotWantedGoesLast() throws Exception {
        assertThat(install(plan(group(16384, "1, 2"), "7")), is(false));
        assertThat(log, is(List.of("ADD 16384[1, 2]", "+ingress.groups", "+ingress.tree_sets")));
        install(plan(group(16384, "1, 2"), "7"));
        assertThat(log, is(List.of()));
        install(plan(group(16385, "3"), "8"));
        assertThat(log, is(List.of("ADD 16385[3]", "+ingress.groups", "-ingress.groups", "REMOVE 16384[1, 2]")));
    }

    @Test
    public void groupsLosePortsBeforeAnyGains() throws Exception {
        install(plan(group(16384, "1, 2") + "," + group(16385, "3")));
        isSlow = true;
        String next = plan(group(16384, "2, 5") + "," + group(16385, "3, 4"));
        assertThat(install(next), is(true));
        assertThat(log, is(List.of("REMOVE_FROM_EXISTING 16384[1]")));
        // As long as ONOS says that one is not done, nothing gains.
        assertThat(install(next), is(true));
        assertThat(log, is(List.of()));
        isSlow = false;
        groups.values().forEach(group -> group.setState(Group.GroupState.ADDED));
        assertThat(install(next), is(false));
        assertThat(log, is(List.of("ADD_TO_EXISTING 16384[5]", "ADD_TO_EXISTING 16385[4]")));
        assertThat(ports(groups.get(16384).buckets().buckets()), is(List.of(2L, 5L)));
    }

    @Test
    public void aGroupOfOtherPortsIsSetAsAWhole() throws Exception {
        install(plan(group(16384, "1, 2")));
        assertThat(install(plan(group(16384, "3"))), is(false));
        assertThat(log, is(List.of("MODIFY 16384[3]")));
    }
}
