package org.wormcast.onos.pipeconf;

import static org.hamcrest.MatcherAssert.assertThat;
import static org.hamcrest.Matchers.is;
import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertThrows;

import java.nio.ByteBuffer;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;

import org.junit.Test;
import org.onlab.packet.Ethernet;
import org.onlab.packet.MacAddress;
import org.onlab.util.ImmutableByteSequence;
import org.onosproject.core.GroupId;
import org.onosproject.net.DeviceId;
import org.onosproject.net.PortNumber;
import org.onosproject.net.flow.DefaultTrafficTreatment;
import org.onosproject.net.flow.TrafficTreatment;
import org.onosproject.net.packet.DefaultOutboundPacket;
import org.onosproject.net.packet.InboundPacket;
import org.onosproject.net.pi.model.PiPacketOperationType;
import org.onosproject.net.pi.model.PiPipelineInterpreter.PiInterpreterException;
import org.onosproject.net.pi.runtime.PiAction;
import org.onosproject.net.pi.runtime.PiPacketMetadata;
import org.onosproject.net.pi.runtime.PiPacketOperation;

/**
 * Treatments and packets in terms of the program.
 */
public class WormcastInterpreterTest {

    private static final DeviceId DEVICE = DeviceId.deviceId("device:s1");

    private final WormcastInterpreter interpreter = new WormcastInterpreter();

    private static byte[] frame() {
        Ethernet frame = new Ethernet();
        frame.setEtherType((short) 0x88b5).setSourceMACAddress(MacAddress.ONOS)
                .setDestinationMACAddress(MacAddress.BROADCAST).setPad(true);
        return frame.serialize();
    }

    @Test
    public void packetOutsHaveThePortAndThePadding() throws PiInterpreterException {
        TrafficTreatment treatment = DefaultTrafficTreatment.builder()
                .setOutput(PortNumber.portNumber(300)).setOutput(PortNumber.portNumber(2)).build();
        List<PiPacketOperation> sent = List.copyOf(interpreter.mapOutboundPacket(
                new DefaultOutboundPacket(DEVICE, treatment, ByteBuffer.wrap(frame()))));
        assertThat(sent.size(), is(2));
        assertThat(sent.get(0).type(), is(PiPacketOperationType.PACKET_OUT));
        assertArrayEquals(frame(), sent.get(0).data().asArray());
        assertThat(sent.get(0).metadatas().stream().map(Object::toString).collect(Collectors.toSet()),
                is(Set.of("egress_port = 0x12c", "pad = 0x0")));
        TrafficTreatment beyond = DefaultTrafficTreatment.builder().setOutput(PortNumber.portNumber(512)).build();
        assertThrows(PiInterpreterException.class, () -> interpreter.mapOutboundPacket(
                new DefaultOutboundPacket(DEVICE, beyond, ByteBuffer.wrap(frame()))));
    }

    @Test
    public void packetInsComeFromTheirPort() throws Exception {
        for (int port : new int[] {0, 5, 130, 509}) {
            PiPacketOperation operation = PiPacketOperation.builder().withType(PiPacketOperationType.PACKET_IN)
                    .withData(ImmutableByteSequence.copyFrom(frame()))
                    .withMetadata(PiPacketMetadata.builder().withId(P4Names.PACKET_IN_PORT)
                            .withValue(ImmutableByteSequence.copyFrom((short) port).fit(P4Names.PORT_BITS)).build())
                    .build();
            InboundPacket packet = interpreter.mapInboundPacket(operation, DEVICE);
            assertThat(packet.receivedFrom().port().toLong(), is((long) port));
            assertThat(packet.parsed().getEtherType(), is((short) 0x88b5));
        }
        PiPacketOperation without = PiPacketOperation.builder().withType(PiPacketOperationType.PACKET_IN)
                .withData(ImmutableByteSequence.copyFrom(frame())).build();
        assertThrows(PiInterpreterException.class, () -> interpreter.mapInboundPacket(without, DEVICE));
    }

    @Test
    public void groupsBecomeActions() throws PiInterpreterException {
        TrafficTreatment group = DefaultTrafficTreatment.builder().group(new GroupId(0x4002)).build();
        assertThat(interpreter.mapTreatment(group, P4Names.GROUPS).toString(), is("ingress.replicate(mgid=0x4002)"));
        assertThrows(PiInterpreterException.class, () -> interpreter.mapTreatment(group, P4Names.PORTS));
    }

    @Test
    public void theOriginalDefaultActionIsAllOnes() {
        PiAction action = interpreter.getOriginalDefaultAction(P4Names.TREE_SETS).orElseThrow();
        assertThat(action.id(), is(P4Names.REPLICATE_FILTERED));
        assertThat(action.parameters().stream().map(one -> one.id() + "=" + one.value()).collect(Collectors.toSet()),
                is(Set.of("low=0x" + "ff".repeat(16), "high=0x" + "ff".repeat(16))));
        assertThat(interpreter.getOriginalDefaultAction(P4Names.GROUPS).isPresent(), is(false));
        assertThat(interpreter.mapLogicalPortNumber(PortNumber.CONTROLLER).orElseThrow(), is(P4Names.CPU_PORT));
    }
}
