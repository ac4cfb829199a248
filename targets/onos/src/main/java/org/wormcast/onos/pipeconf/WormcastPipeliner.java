package org.wormcast.onos.pipeconf;

import static org.onosproject.net.flowobjective.ObjectiveError.FLOWINSTALLATIONFAILED;
import static org.onosproject.net.flowobjective.ObjectiveError.GROUPMISSING;
import static org.onosproject.net.flowobjective.ObjectiveError.UNSUPPORTED;

import java.util.List;
import java.util.OptionalInt;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;

import com.google.common.collect.ImmutableList;
import org.onosproject.net.DeviceId;
import org.onosproject.net.behaviour.NextGroup;
import org.onosproject.net.behaviour.Pipeliner;
import org.onosproject.net.behaviour.PipelinerContext;
import org.onosproject.net.driver.AbstractHandlerBehaviour;
import org.onosproject.net.flow.FlowEntry;
import org.onosproject.net.flow.FlowEntry.FlowEntryState;
import org.onosproject.net.flow.FlowRule;
import org.onosproject.net.flow.FlowRuleOperations;
import org.onosproject.net.flow.FlowRuleOperationsContext;
import org.onosproject.net.flow.FlowRuleService;
import org.onosproject.net.flowobjective.FilteringObjective;
import org.onosproject.net.flowobjective.FlowObjectiveStore;
import org.onosproject.net.flowobjective.ForwardingObjective;
import org.onosproject.net.flowobjective.NextObjective;
import org.onosproject.net.flowobjective.Objective;
import org.onosproject.net.flowobjective.Objective.Operation;
import org.onosproject.net.flowobjective.ObjectiveError;
import org.onosproject.net.group.GroupKey;
import org.onosproject.net.group.GroupService;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Flow objectives on the Wormcast program: forwarding objectives are table entries, next objectives are replication
 * groups. There is nothing to filter: {@code targets/onos/README.md} says what objectives look like.
 */
public class WormcastPipeliner extends AbstractHandlerBehaviour implements Pipeliner {

    private final Logger log = LoggerFactory.getLogger(getClass());

    private DeviceId device;
    private Translator translator;
    private FlowRuleService flowRules;
    private GroupService groups;
    private FlowObjectiveStore store;

    @Override
    public void init(DeviceId deviceId, PipelinerContext context) {
        device = deviceId;
        translator = new Translator(deviceId);
        flowRules = context.directory().get(FlowRuleService.class);
        groups = context.directory().get(GroupService.class);
        store = context.store();
    }

    @Override
    public void filter(FilteringObjective objective) {
        refuse(objective, new ObjectiveRefused(UNSUPPORTED, "the program filters nothing"));
    }

    @Override
    public void forward(ForwardingObjective objective) {
        try {
            List<FlowRule> rules = translator.rules(objective, nextGroup(objective));
            FlowRuleOperations.Builder operations = FlowRuleOperations.builder();
            switch (objective.op()) {
                case ADD:
                    rules.forEach(operations::add);
                    break;
                case REMOVE:
                    rules.stream().filter(rule -> !isShared(rule, rules.get(0))).forEach(operations::remove);
                    break;
                default:
                    throw new ObjectiveRefused(UNSUPPORTED, objective.op() + "; possible: ADD, REMOVE");
            }
            flowRules.apply(operations.build(new FlowRuleOperationsContext() {
                @Override
                public void onSuccess(FlowRuleOperations done) {
                    pass(objective);
                }

                @Override
                public void onError(FlowRuleOperations failed) {
                    fail(objective, FLOWINSTALLATIONFAILED);
                }
            }));
        } catch (ObjectiveRefused refused) {
            refuse(objective, refused);
        }
    }

    @Override
    public void next(NextObjective objective) {
        try {
            change(objective, Translator.mgid(objective));
            pass(objective);
        } catch (ObjectiveRefused refused) {
            refuse(objective, refused);
        }
    }

    @Override
    public List<String> getNextMappings(NextGroup nextGroup) {
        return ImmutableList.of("replication group " + Translator.decode(nextGroup.data()) + " of " + device);
    }

    private void change(NextObjective objective, int mgid) throws ObjectiveRefused {
        GroupKey key = Translator.key(mgid);
        if (objective.op() == Operation.ADD) {
            if (groups.getGroup(device, key) == null) {
                groups.addGroup(translator.group(objective, mgid));
            } else {
                groups.setBucketsForGroup(device, key, translator.buckets(objective), key, objective.appId());
            }
            store.putNextGroup(objective.id(), () -> Translator.encode(mgid));
            return;
        }
        if (groups.getGroup(device, key) == null) {
            throw new ObjectiveRefused(GROUPMISSING, "no replication group " + mgid + " of " + device);
        }
        switch (objective.op()) {
            case ADD_TO_EXISTING:
                groups.addBucketsToGroup(device, key, translator.buckets(objective), key, objective.appId());
                break;
            case REMOVE_FROM_EXISTING:
                groups.removeBucketsFromGroup(device, key, translator.buckets(objective), key, objective.appId());
                break;
            case MODIFY:
                groups.setBucketsForGroup(device, key, translator.buckets(objective), key, objective.appId());
                break;
            case REMOVE:
                FlowRule left = translator.groupRule(objective.appId(), mgid);
                if (entries().anyMatch(left::equals)) {
                    flowRules.removeFlowRules(left);
                }
                groups.removeGroup(device, key, objective.appId());
                store.removeNextGroup(objective.id());
                break;
            default:
                throw new ObjectiveRefused(UNSUPPORTED, objective.op() + "; possible: ADD, ADD_TO_EXISTING, "
                        + "REMOVE_FROM_EXISTING, MODIFY, REMOVE");
        }
    }

    // Whether an entry that an address brought along serves other addresses too.
    private boolean isShared(FlowRule rule, FlowRule address) {
        return rule != address && entries().anyMatch(entry -> entry.table().equals(address.table())
                && entry.treatment().equals(address.treatment()) && !entry.selector().equals(address.selector()));
    }

    private Stream<FlowEntry> entries() {
        return StreamSupport.stream(flowRules.getFlowEntries(device).spliterator(), false)
                .filter(entry -> entry.state() == FlowEntryState.ADDED || entry.state() == FlowEntryState.PENDING_ADD);
    }

    private OptionalInt nextGroup(ForwardingObjective objective) throws ObjectiveRefused {
        if (objective.nextId() == null) {
            return OptionalInt.empty();
        }
        NextGroup next = store.getNextGroup(objective.nextId());
        if (next == null) {
            throw new ObjectiveRefused(GROUPMISSING, "no next objective " + objective.nextId());
        }
        return OptionalInt.of(Translator.decode(next.data()));
    }

    private void refuse(Objective objective, ObjectiveRefused refused) {
        log.warn("{}: refused {}: {}", device, objective, refused.getMessage());
        fail(objective, refused.error());
    }

    private static void pass(Objective objective) {
        objective.context().ifPresent(context -> context.onSuccess(objective));
    }

    private static void fail(Objective objective, ObjectiveError error) {
        objective.context().ifPresent(context -> context.onError(objective, error));
    }
}
