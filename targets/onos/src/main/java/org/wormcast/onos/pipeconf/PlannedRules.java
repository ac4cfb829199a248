package org.wormcast.onos.pipeconf;

import java.util.OptionalInt;

import org.onosproject.net.DeviceId;
import org.onosproject.net.flow.FlowRule;
import org.onosproject.net.flowobjective.ForwardingObjective;

/**
 * The flow rules that forwarding objectives become, for whoever compares them with what a device holds.
 */
public final class PlannedRules {

    private PlannedRules() {
    }

    /**
     * The flow rule of an objective that has a key and an action of the program.
     *
     * @param device    device
     * @param objective objective without a next objective
     * @return rule
     * @throws IllegalArgumentException if the program has no such key
     */
    public static FlowRule of(DeviceId device, ForwardingObjective objective) {
        try {
            return new Translator(device).rules(objective, OptionalInt.empty()).get(0);
        } catch (ObjectiveRefused refused) {
            throw new IllegalArgumentException(refused.getMessage(), refused);
        }
    }
}
