package org.wormcast.onos.pipeconf;

import static org.hamcrest.MatcherAssert.assertThat;
import static org.hamcrest.Matchers.is;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

import org.junit.Before;
import org.junit.Test;
import org.onlab.osgi.ServiceDirectory;
import org.onlab.packet.IpPrefix;
import org.onosproject.TestApplicationId;
import org.onosproject.core.ApplicationId;
import org.onosproject.core.GroupId;
import org.onosproject.net.DeviceId;
import org.onosproject.net.PortNumber;
import org.onosproject.net.behaviour.NextGroup;
import org.onosproject.net.behaviour.PipelinerContext;
import org.onosproject.net.flow.DefaultFlowEntry;
import org.onosproject.net.flow.DefaultTrafficSelector;
import org.onosproject.net.flow.DefaultTrafficTreatment;
import org.onosproject.net.flow.FlowEntry;
import org.onosproject.net.flow.FlowRule;
import org.onosproject.net.flow.FlowRuleOperation;
import org.onosproject.net.flow.FlowRuleOperations;
import org.onosproject.net.flow.FlowRuleServiceAdapter;
import org.onosproject.net.flowobjective.DefaultForwardingObjective;
import org.onosproject.net.flowobjective.DefaultNextObjective;
import org.onosproject.net.flowobjective.DefaultNextTreatment;
import org.onosproject.net.flowobjective.FlowObjectiveStore;
import org.onosproject.net.flowobjective.FlowObjectiveStoreDelegate;
import org.onosproject.net.flowobjective.ForwardingObjective;
import org.onosproject.net.flowobjective.NextObjective;
import org.onosproject.net.flowobjective.Objective;
import org.onosproject.net.flowobjective.ObjectiveContext;
import org.onosproject.net.flowobjective.ObjectiveError;
import org.onosproject.net.group.DefaultGroup;
import org.onosproject.net.group.Group;
import org.onosproject.net.group.GroupDescription;
import org.onosproject.net.group.GroupKey;
import org.onosproject.net.group.GroupServiceAdapter;

/**
 * Objectives come to a device and go again; what others still need stays.
 */
public class WormcastPipelinerTest {

    private static final DeviceId DEVICE = DeviceId.deviceId("device:s1");
    private static final ApplicationId APP = new TestApplicationId("test");
    private static final int NEXT = 20_001;

    private final List<FlowEntry> entries = new ArrayList<>();
    private final Map<GroupKey, Group> groups = new HashMap<>();
    private final List<ObjectiveError> errors = new ArrayList<>();
    private final WormcastPipeliner pipeliner = new WormcastPipeliner();

    private final ObjectiveContext context = new ObjectiveContext() {
        @Override
        public void onError(Objective objective, ObjectiveError error) {
            errors.add(error);
        }
    };

    private class Rules extends FlowRuleServiceAdapter {
        @Override
        public void apply(FlowRuleOperations operations) {
            for (FlowRuleOperation operation : operations.stages().get(0)) {
                entries.remove(new DefaultFlowEntry(operation.rule()));
                if (operation.type() == FlowRuleOperation.Type.ADD) {
                    entries.add(new DefaultFlowEntry(operation.rule(), FlowEntry.FlowEntryState.ADDED));
                }
            }
            operations.callback().onSuccess(operations);
        }

        @Override
        public void removeFlowRules(FlowRule... rules) {
            for (FlowRule rule : rules) {
                entries.remove(new DefaultFlowEntry(rule));
            }
        }

        @Override
        public Iterable<FlowEntry> getFlowEntries(DeviceId device) {
            return new ArrayList<>(entries);
        }
    }

    private class Groups extends GroupServiceAdapter {
        @Override
        public Group getGroup(DeviceId device, GroupKey key) {
            return groups.get(key);
        }

        @Override
        public void addGroup(GroupDescription group) {
            groups.put(group.appCookie(), new DefaultGroup(new GroupId(group.givenGroupId()), group));
        }

        @Override
        public void removeGroup(DeviceId device, GroupKey key, ApplicationId app) {
            groups.remove(key);
        }
    }

    private static class Store implements FlowObjectiveStore {
        private final Map<Integer, NextGroup> nexts = new HashMap<>();

        @Override
        public void putNextGroup(Integer id, NextGroup group) {
            nexts.put(id, group);
        }

        @Override
        public NextGroup getNextGroup(Integer id) {
            return nexts.get(id);
        }

        @Override
        public NextGroup removeNextGroup(Integer id) {
            return nexts.remove(id);
        }

        @Override
        public Map<Integer, NextGroup> getAllGroups() {
            return nexts;
        }

        @Override
        public int allocateNextId() {
            return nexts.size();
        }

        @Override
        public void setDelegate(FlowObjectiveStoreDelegate delegate) {
        }

        @Override
        public void unsetDelegate(FlowObjectiveStoreDelegate delegate) {
        }

        @Override
        public boolean hasDelegate() {
            return false;
        }
    }

    @Before
    public void setUp() {
        Rules rules = new Rules();
        Groups replication = new Groups();
        Store store = new Store();
        ServiceDirectory directory = new ServiceDirectory() {
            @Override
            public <T> T get(Class<T> service) {
                return service.cast(service.isInstance(rules) ? rules : replication);
            }
        };
        pipeliner.init(DEVICE, new PipelinerContext() {
            @Override
            public ServiceDirectory directory() {
                return directory;
            }

            @Override
            public FlowObjectiveStore store() {
                return store;
            }
        });
    }

    private static NextObjective.Builder next() {
        return DefaultNextObjective.builder().withId(NEXT).fromApp(APP).withType(NextObjective.Type.BROADCAST)
                .addTreatment(DefaultNextTreatment.of(
                        DefaultTrafficTreatment.builder().setOutput(PortNumber.portNumber(1)).build()));
    }

    private static ForwardingObjective.Builder to(String address, int priority) {
        return DefaultForwardingObjective.builder().withPriority(priority).fromApp(APP).makePermanent()
                .withFlag(ForwardingObjective.Flag.VERSATILE).nextStep(NEXT).withSelector(
                        DefaultTrafficSelector.builder().matchIPDst(IpPrefix.valueOf(address + "/32")).build());
    }

    private List<String> tables() {
        return entries.stream().map(entry -> entry.table().toString()).sorted().collect(Collectors.toList());
    }

    @Test
    public void anAddressThatGoesLeavesTheGroupToOthers() {
        pipeliner.next(next().add(context));
        pipeliner.forward(to("239.1.1.1", 7).add(context));
        pipeliner.forward(to("239.1.1.2", 9).add(context));
        assertThat(tables(), is(List.of("ingress.class_d", "ingress.class_d", "ingress.groups")));
        pipeliner.forward(to("239.1.1.1", 7).remove(context));
        assertThat(tables(), is(List.of("ingress.class_d", "ingress.groups")));
        pipeliner.forward(to("239.1.1.2", 9).remove(context));
        assertThat(tables(), is(List.of()));
        assertThat(errors, is(List.of()));
    }

    @Test
    public void withItsNextObjectiveAGroupGoesWhole() {
        pipeliner.next(next().add(context));
        pipeliner.forward(to("239.1.1.1", 7).add(context));
        entries.removeIf(entry -> entry.table().toString().equals("ingress.class_d"));
        pipeliner.next(next().remove(context));
        assertThat(tables(), is(List.of()));
        assertThat(groups.isEmpty(), is(true));
    }

    @Test
    public void whatIsNotThereIsSaid() {
        pipeliner.forward(to("239.1.1.1", 7).add(context));
        pipeliner.next(next().remove(context));
        assertThat(errors, is(List.of(ObjectiveError.GROUPMISSING, ObjectiveError.GROUPMISSING)));
        assertThat(tables(), is(List.of()));
    }
}
