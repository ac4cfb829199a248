package org.wormcast.onos.integration;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

import org.onosproject.net.DeviceId;
import org.onosproject.net.device.DeviceEvent;
import org.onosproject.net.device.DeviceListener;
import org.onosproject.net.device.DeviceService;
import org.onosproject.net.flow.CompletedBatchOperation;
import org.onosproject.net.flow.DefaultFlowEntry;
import org.onosproject.net.flow.FlowEntry;
import org.onosproject.net.flow.FlowRule;
import org.onosproject.net.flow.FlowRuleProvider;
import org.onosproject.net.flow.FlowRuleProviderRegistry;
import org.onosproject.net.flow.FlowRuleProviderService;
import org.onosproject.net.flow.oldbatch.FlowRuleBatchEntry;
import org.onosproject.net.flow.oldbatch.FlowRuleBatchOperation;
import org.onosproject.net.group.DefaultGroup;
import org.onosproject.net.group.Group;
import org.onosproject.net.group.GroupOperation;
import org.onosproject.net.group.GroupOperations;
import org.onosproject.net.group.GroupProvider;
import org.onosproject.net.group.GroupProviderRegistry;
import org.onosproject.net.group.GroupProviderService;
import org.onosproject.net.pi.model.PiPipeconf;
import org.onosproject.net.pi.service.PiPipeconfService;
import org.onosproject.net.pi.service.PiTranslationException;
import org.onosproject.net.pi.service.PiTranslationService;
import org.onosproject.net.provider.AbstractProvider;
import org.onosproject.net.provider.ProviderId;
import org.osgi.service.component.annotations.Activate;
import org.osgi.service.component.annotations.Component;
import org.osgi.service.component.annotations.Deactivate;
import org.osgi.service.component.annotations.Reference;
import org.osgi.service.component.annotations.ReferenceCardinality;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Tables and groups of the devices that stand in for switches. They take what ONOS's own translation makes an entry of
 * the program of, as the P4Runtime driver would, and refuse the rest.
 */
@Component(immediate = true)
public class StandInTables extends AbstractProvider implements FlowRuleProvider, GroupProvider {

    private static final String SCHEME = "standin";

    private final Logger log = LoggerFactory.getLogger(getClass());
    private final Map<DeviceId, Set<FlowRule>> rules = new ConcurrentHashMap<>();
    private final Map<DeviceId, Map<Integer, Group>> groups = new ConcurrentHashMap<>();
    private final Set<DeviceId> changed = new HashSet<>();
    private final Set<DeviceId> changedGroups = new HashSet<>();
    private final DeviceListener listener = this::changed;

    @Reference(cardinality = ReferenceCardinality.MANDATORY)
    protected FlowRuleProviderRegistry flowProviders;
    @Reference(cardinality = ReferenceCardinality.MANDATORY)
    protected GroupProviderRegistry groupProviders;
    @Reference(cardinality = ReferenceCardinality.MANDATORY)
    protected DeviceService devices;
    @Reference(cardinality = ReferenceCardinality.MANDATORY)
    protected PiPipeconfService pipeconfs;
    @Reference(cardinality = ReferenceCardinality.MANDATORY)
    protected PiTranslationService translation;

    private FlowRuleProviderService flowService;
    private GroupProviderService groupService;
    private ThreadPoolExecutor executor;

    /** A provider of flow rules and groups. */
    public StandInTables() {
        super(new ProviderId(SCHEME, "org.wormcast.onos.integration.tables"));
    }

    @Activate
    protected void activate() {
        executor = new ThreadPoolExecutor(1, 1, 0, TimeUnit.SECONDS, new LinkedBlockingQueue<>());
        flowService = flowProviders.register(this);
        groupService = groupProviders.register(this);
        devices.addListener(listener);
    }

    @Deactivate
    protected void deactivate() {
        devices.removeListener(listener);
        groupProviders.unregister(this);
        flowProviders.unregister(this);
        executor.shutdownNow();
    }

    @Override
    public void applyFlowRule(FlowRule... flowRules) {
        run(() -> {
            for (FlowRule rule : flowRules) {
                change(rule, true);
            }
        });
    }

    @Override
    public void removeFlowRule(FlowRule... flowRules) {
        run(() -> {
            for (FlowRule rule : flowRules) {
                change(rule, false);
            }
        });
    }

    @Override
    public void executeBatch(FlowRuleBatchOperation batch) {
        run(() -> {
            Set<FlowRule> failures = new HashSet<>();
            for (FlowRuleBatchEntry entry : batch.getOperations()) {
                if (!change(entry.target(), entry.operator() != FlowRuleBatchEntry.FlowRuleOperation.REMOVE)) {
                    failures.add(entry.target());
                }
            }
            flowService.batchOperationCompleted(batch.id(),
                    new CompletedBatchOperation(failures.isEmpty(), failures, batch.deviceId()));
        });
    }

    private boolean change(FlowRule rule, boolean add) {
        Set<FlowRule> held = rules.computeIfAbsent(rule.deviceId(), device -> new HashSet<>());
        held.remove(rule);
        changed.add(rule.deviceId());
        return !add || fits(rule) && held.add(rule);
    }

    // After the last change that waits, since ONOS looks at every entry each time.
    private void report() {
        for (DeviceId device : changed) {
            List<FlowEntry> entries = new ArrayList<>();
            rules.get(device).forEach(rule -> entries.add(new DefaultFlowEntry(rule, FlowEntry.FlowEntryState.ADDED)));
            flowService.pushFlowMetricsWithoutFlowMissing(device, entries);
        }
        changed.clear();
        for (DeviceId device : changedGroups) {
            groupService.pushGroupMetrics(device,
                    new ArrayList<>(groups.computeIfAbsent(device, same -> new TreeMap<>()).values()));
        }
        changedGroups.clear();
    }

    @Override
    public void performGroupOperation(DeviceId device, GroupOperations operations) {
        run(() -> {
            Map<Integer, Group> held = groups.computeIfAbsent(device, same -> new TreeMap<>());
            for (GroupOperation operation : operations.operations()) {
                if (operation.opType() == GroupOperation.Type.DELETE) {
                    held.remove(operation.groupId().id());
                    continue;
                }
                DefaultGroup group =
                        new DefaultGroup(operation.groupId(), device, operation.groupType(), operation.buckets());
                group.setState(Group.GroupState.ADDED);
                if (fits(group)) {
                    held.put(operation.groupId().id(), group);
                } else {
                    groupService.groupOperationFailed(device, operation);
                }
            }
            changedGroups.add(device);
        });
    }

    private void run(Runnable work) {
        executor.execute(() -> {
            try {
                work.run();
                if (executor.getQueue().isEmpty()) {
                    report();
                }
            } catch (RuntimeException e) {
                log.error("A stand-in fails", e);
            }
        });
    }

    private boolean fits(FlowRule rule) {
        try {
            translation.flowRuleTranslator().translate(rule, pipeconf(rule.deviceId()));
            return true;
        } catch (PiTranslationException e) {
            log.warn("{}: {}", rule, e.getMessage());
            return false;
        }
    }

    private boolean fits(Group group) {
        try {
            translation.replicationGroupTranslator().translate(group, pipeconf(group.deviceId()));
            return true;
        } catch (PiTranslationException e) {
            log.warn("{}: {}", group, e.getMessage());
            return false;
        }
    }

    private PiPipeconf pipeconf(DeviceId device) throws PiTranslationException {
        return pipeconfs.getPipeconf(device).orElseThrow(() -> new PiTranslationException("no pipeconf"));
    }

    private void changed(DeviceEvent event) {
        DeviceId device = event.subject().id();
        boolean comes = event.type() == DeviceEvent.Type.DEVICE_ADDED
                || event.type() == DeviceEvent.Type.DEVICE_AVAILABILITY_CHANGED;
        if (comes && device.uri().getScheme().equals(SCHEME)) {
            // ONOS gives no groups to a device before it has heard which ones it has.
            run(() -> changedGroups.add(device));
        }
    }
}
