package org.wormcast.onos.fabric;

import static org.onlab.util.ImmutableByteSequence.copyFrom;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.SortedMap;
import java.util.SortedSet;
import java.util.TreeMap;
import java.util.TreeSet;

import com.fasterxml.jackson.databind.JsonNode;
import com.google.common.collect.Iterators;
import org.onlab.util.ImmutableByteSequence;
import org.onosproject.net.DeviceId;
import org.onosproject.net.flow.DefaultTrafficSelector;
import org.onosproject.net.flow.DefaultTrafficTreatment;
import org.onosproject.net.flow.TrafficSelector;
import org.onosproject.net.flow.TrafficTreatment;
import org.onosproject.net.flow.criteria.PiCriterion;
import org.onosproject.net.pi.model.PiActionId;
import org.onosproject.net.pi.model.PiActionParamId;
import org.onosproject.net.pi.model.PiMatchFieldId;
import org.onosproject.net.pi.runtime.PiAction;
import org.onosproject.net.pi.runtime.PiActionParam;
import org.onosproject.net.pi.runtime.PiExactFieldMatch;
import org.onosproject.net.pi.runtime.PiTernaryFieldMatch;
import org.wormcast.onos.pipeconf.P4Names;

/**
 * What one switch must hold, from the plan file.
 */
final class SwitchEntries {

    /** ONOS takes no priority 0 here; a table with exact keys ignores it. */
    private static final int PRIORITY_EXACT = 1;

    private final DeviceId device;
    private final List<Entry> entries = new ArrayList<>();
    private final SortedMap<Integer, SortedSet<Long>> multicast = new TreeMap<>();

    /**
     * One table entry, or a default action if the selector is empty.
     */
    static final class Entry {
        private final TrafficSelector selector;
        private final TrafficTreatment treatment;
        private final int priority;

        private Entry(TrafficSelector selector, TrafficTreatment treatment, int priority) {
            this.selector = selector;
            this.treatment = treatment;
            this.priority = priority;
        }

        TrafficSelector selector() {
            return selector;
        }

        TrafficTreatment treatment() {
            return treatment;
        }

        int priority() {
            return priority;
        }
    }

    private SwitchEntries(DeviceId device) {
        this.device = device;
    }

    /**
     * What a device must hold.
     *
     * @param device the device
     * @param given  a switch of the plan file
     * @return entries
     */
    static SwitchEntries read(DeviceId device, JsonNode given) {
        SwitchEntries read = new SwitchEntries(device);
        for (JsonNode entry : given.path("entries")) {
            read.entries.add(new Entry(selector(entry.path("match")), treatment(entry),
                    Math.max(PRIORITY_EXACT, entry.path("priority").asInt())));
        }
        for (JsonNode entry : given.path("defaults")) {
            // An objective without a key means the default of the table for TREE worms. Switches of ONOS write no
            // records of hops.
            if (!entry.path("table").asText().equals(P4Names.TREE_SETS.id())) {
                continue;
            }
            read.entries.add(new Entry(DefaultTrafficSelector.emptySelector(), treatment(entry), PRIORITY_EXACT));
        }
        for (JsonNode group : given.path("multicast")) {
            SortedSet<Long> ports = new TreeSet<>();
            group.path("ports").forEach(port -> ports.add(port.asLong()));
            read.multicast.put(group.path("mgid").asInt(), ports);
        }
        return read;
    }

    DeviceId device() {
        return device;
    }

    List<Entry> entries() {
        return entries;
    }

    // Ports by number of the replication group.
    SortedMap<Integer, SortedSet<Long>> multicast() {
        return multicast;
    }

    private static TrafficSelector selector(JsonNode match) {
        PiCriterion.Builder fields = PiCriterion.builder();
        for (Map.Entry<String, JsonNode> field : fields(match)) {
            PiMatchFieldId id = PiMatchFieldId.of(field.getKey());
            if (field.getValue().isObject()) {
                fields.add(new PiTernaryFieldMatch(id, bytes(field.getValue().path("value")),
                        bytes(field.getValue().path("mask"))));
            } else {
                fields.add(new PiExactFieldMatch(id, bytes(field.getValue())));
            }
        }
        return DefaultTrafficSelector.builder().matchPi(fields.build()).build();
    }

    private static TrafficTreatment treatment(JsonNode entry) {
        PiAction.Builder action = PiAction.builder().withId(PiActionId.of(entry.path("action").asText()));
        for (Map.Entry<String, JsonNode> parameter : fields(entry.path("parameters"))) {
            action.withParameter(
                    new PiActionParam(PiActionParamId.of(parameter.getKey()), bytes(parameter.getValue())));
        }
        return DefaultTrafficTreatment.builder().piTableAction(action.build()).build();
    }

    private static List<Map.Entry<String, JsonNode>> fields(JsonNode node) {
        List<Map.Entry<String, JsonNode>> fields = new ArrayList<>();
        Iterators.addAll(fields, node.fields());
        return fields;
    }

    /** In the fewest bytes; ONOS fits values to the widths of the program. */
    private static ImmutableByteSequence bytes(JsonNode number) {
        byte[] bytes = number.bigIntegerValue().toByteArray();
        boolean sign = bytes.length > 1 && bytes[0] == 0;
        return copyFrom(sign ? Arrays.copyOfRange(bytes, 1, bytes.length) : bytes);
    }
}
