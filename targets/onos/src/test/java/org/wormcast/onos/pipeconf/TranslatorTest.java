package org.wormcast.onos.pipeconf;

import static org.hamcrest.MatcherAssert.assertThat;
import static org.hamcrest.Matchers.is;
import static org.junit.Assert.assertThrows;
import static org.onosproject.net.flowobjective.ObjectiveError.BADPARAMS;
import static org.onosproject.net.flowobjective.ObjectiveError.UNSUPPORTED;

import java.util.List;
import java.util.OptionalInt;
import java.util.stream.Collectors;

import org.junit.Test;
import org.onlab.packet.IpPrefix;
import org.onlab.packet.MacAddress;
import org.onosproject.TestApplicationId;
import org.onosproject.core.ApplicationId;
import org.onosproject.net.DeviceId;
import org.onosproject.net.PortNumber;
import org.onosproject.net.flow.DefaultTrafficSelector;
import org.onosproject.net.flow.DefaultTrafficTreatment;
import org.onosproject.net.flow.FlowRule;
import org.onosproject.net.flow.TrafficSelector;
import org.onosproject.net.flow.TrafficTreatment;
import org.onosproject.net.flow.criteria.PiCriterion;
import org.onosproject.net.flowobjective.DefaultForwardingObjective;
import org.onosproject.net.flowobjective.DefaultNextObjective;
import org.onosproject.net.flowobjective.DefaultNextTreatment;
import org.onosproject.net.flowobjective.ForwardingObjective;
import org.onosproject.net.flowobjective.NextObjective;
import org.onosproject.net.flowobjective.ObjectiveError;
import org.onosproject.net.group.GroupDescription;
import org.onosproject.net.pi.model.PiMatchFieldId;

/**
 * What objectives become in the tables of the program, and which are refused.
 */
public class TranslatorTest {

    private static final DeviceId DEVICE = DeviceId.deviceId("device:s1");
    private static final ApplicationId APP = new TestApplicationId("test");

    private final Translator translator = new Translator(DEVICE);

    private static ForwardingObjective.Builder forward(TrafficSelector selector) {
        return DefaultForwardingObjective.builder().withSelector(selector).withPriority(7).fromApp(APP)
                .makePermanent().withFlag(ForwardingObjective.Flag.VERSATILE);
    }

    private static TrafficSelector field(String name, int value) {
        return DefaultTrafficSelector.builder()
                .matchPi(PiCriterion.builder().matchExact(PiMatchFieldId.of(name), value).build()).build();
    }

    private static NextObjective.Builder next(int id, long... ports) {
        NextObjective.Builder next = DefaultNextObjective.builder().withId(id).fromApp(APP)
                .withType(NextObjective.Type.BROADCAST);
        for (long port : ports) {
            next.addTreatment(DefaultNextTreatment.of(
                    DefaultTrafficTreatment.builder().setOutput(PortNumber.portNumber(port)).build()));
        }
        return next;
    }

    private static TrafficTreatment replicate(int mgid) {
        return DefaultTrafficTreatment.builder().piTableAction(WormcastInterpreter.replicate(mgid)).build();
    }

    private static List<String> tables(List<FlowRule> rules) {
        return rules.stream().map(rule -> rule.table().toString()).collect(Collectors.toList());
    }

    private void refused(ObjectiveError error, ForwardingObjective objective, OptionalInt mgid) {
        assertThat(assertThrows(ObjectiveRefused.class, () -> translator.rules(objective, mgid)).error(), is(error));
    }

    @Test
    public void anAddressWithANextObjectiveBecomesTwoEntries() throws ObjectiveRefused {
        TrafficSelector address = DefaultTrafficSelector.builder()
                .matchIPDst(IpPrefix.valueOf("239.1.2.3/32")).build();
        List<FlowRule> rules = translator.rules(forward(address).nextStep(1).add(), OptionalInt.of(0x4001));
        assertThat(tables(rules), is(List.of("ingress.class_d", "ingress.groups")));
        assertThat(rules.get(0).treatment().allInstructions().toString(), is("[ingress.enter_group(group=0x4001)]"));
        assertThat(rules.get(1).selector(), is(DefaultTrafficSelector.builder()
                .matchPi(PiCriterion.builder().matchExact(P4Names.GROUP, (short) 0x4001).build()).build()));
        assertThat(rules.get(1).treatment().allInstructions().toString(), is("[ingress.replicate(mgid=0x4001)]"));
        assertThat(rules.get(0).priority(), is(7));
    }

    @Test
    public void eachKeyLeadsToItsTable() throws ObjectiveRefused {
        String[][] keys = {
                {"port", "ingress.ports"}, {"standard_metadata.ingress_port", "ingress.port_roles"},
                {"port_set", "ingress.tree_sets"}, {"group", "ingress.groups"}, {"hdr.ipv4.dst", "ingress.class_d"},
                {"standard_metadata.egress_port", "egress.edge_ports"}};
        for (String[] key : keys) {
            ForwardingObjective objective = forward(field(key[0], 3)).withTreatment(replicate(5)).add();
            assertThat(tables(translator.rules(objective, OptionalInt.empty())), is(List.of(key[1])));
        }
    }

    @Test
    public void noKeyMeansTheDefaultActionOfTreeSets() throws ObjectiveRefused {
        ForwardingObjective objective =
                forward(DefaultTrafficSelector.emptySelector()).withTreatment(replicate(2)).add();
        assertThat(tables(translator.rules(objective, OptionalInt.empty())), is(List.of("ingress.tree_sets")));
    }

    @Test
    public void whatTheProgramCannotDoIsRefused() {
        TrafficSelector unicast = DefaultTrafficSelector.builder().matchIPDst(IpPrefix.valueOf("10.0.0.1/32")).build();
        refused(UNSUPPORTED, forward(unicast).nextStep(1).add(), OptionalInt.of(5));
        TrafficSelector mac = DefaultTrafficSelector.builder().matchEthDst(MacAddress.BROADCAST).build();
        refused(UNSUPPORTED, forward(mac).nextStep(1).add(), OptionalInt.of(5));
        refused(UNSUPPORTED, forward(field("unknown", 1)).nextStep(1).add(), OptionalInt.of(5));
        refused(UNSUPPORTED, forward(field("port", 1)).nextStep(1).add(), OptionalInt.of(5));
        TrafficSelector address = DefaultTrafficSelector.builder().matchIPDst(IpPrefix.valueOf("239.1.1.1/32")).build();
        refused(BADPARAMS, forward(address).nextStep(1).add(), OptionalInt.of(255));
    }

    @Test
    public void aNextObjectiveBecomesAReplicationGroupOfItsPorts() throws ObjectiveRefused {
        GroupDescription group = translator.group(next(9, 4, 1, 4).add(), 0x4000);
        assertThat(group.type(), is(GroupDescription.Type.ALL));
        assertThat(group.givenGroupId(), is(0x4000));
        assertThat(group.buckets().buckets().stream()
                .map(bucket -> bucket.treatment().allInstructions().toString()).collect(Collectors.toList()),
                is(List.of("[OUTPUT:1]", "[OUTPUT:4]")));
    }

    @Test
    public void theNumberIsThatOfTheMetaOrTheId() throws ObjectiveRefused {
        TrafficSelector meta = DefaultTrafficSelector.builder().matchMetadata(0x123).build();
        assertThat(Translator.mgid(next(70_000, 1).withMeta(meta).add()), is(0x123));
        assertThat(Translator.mgid(next(20_001, 1).add()), is(20_001));
        assertThat(Translator.decode(Translator.encode(0x7fff)), is(0x7fff));
        for (int number : new int[] {0, 0x8000, 70_000}) {
            assertThat(assertThrows(ObjectiveRefused.class, () -> Translator.mgid(next(number, 1).add())).error(),
                    is(BADPARAMS));
        }
    }

    @Test
    public void bucketsOtherThanOnePortAreRefused() {
        NextObjective flood = DefaultNextObjective.builder().withId(5).fromApp(APP)
                .withType(NextObjective.Type.BROADCAST).addTreatment(DefaultNextTreatment.of(
                        DefaultTrafficTreatment.builder().setOutput(PortNumber.FLOOD).build())).add();
        NextObjective simple = next(5, 1).withType(NextObjective.Type.SIMPLE).add();
        for (NextObjective wrong : List.of(flood, simple)) {
            assertThat(assertThrows(ObjectiveRefused.class, () -> translator.buckets(wrong)).error(), is(UNSUPPORTED));
        }
    }
}
