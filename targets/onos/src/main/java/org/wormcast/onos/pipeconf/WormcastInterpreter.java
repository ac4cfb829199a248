package org.wormcast.onos.pipeconf;

import static java.lang.String.format;
import static org.onlab.util.ImmutableByteSequence.copyFrom;
import static org.onosproject.net.pi.model.PiPacketOperationType.PACKET_OUT;
import static org.wormcast.onos.pipeconf.P4Names.CPU_PORT;
import static org.wormcast.onos.pipeconf.P4Names.ENTER_GROUP;
import static org.wormcast.onos.pipeconf.P4Names.GROUPS;
import static org.wormcast.onos.pipeconf.P4Names.GROUP_NUMBER;
import static org.wormcast.onos.pipeconf.P4Names.HIGH;
import static org.wormcast.onos.pipeconf.P4Names.INGRESS_PORT;
import static org.wormcast.onos.pipeconf.P4Names.IPV4_DST;
import static org.wormcast.onos.pipeconf.P4Names.LOW;
import static org.wormcast.onos.pipeconf.P4Names.MGID;
import static org.wormcast.onos.pipeconf.P4Names.PACKET_IN_PORT;
import static org.wormcast.onos.pipeconf.P4Names.PACKET_OUT_PAD;
import static org.wormcast.onos.pipeconf.P4Names.PACKET_OUT_PORT;
import static org.wormcast.onos.pipeconf.P4Names.PAD_BITS;
import static org.wormcast.onos.pipeconf.P4Names.PORT_BITS;
import static org.wormcast.onos.pipeconf.P4Names.REPLICATE;
import static org.wormcast.onos.pipeconf.P4Names.REPLICATE_FILTERED;
import static org.wormcast.onos.pipeconf.P4Names.TREE_SETS;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Optional;

import com.google.common.collect.ImmutableList;
import org.onlab.packet.DeserializationException;
import org.onlab.packet.Ethernet;
import org.onlab.util.ImmutableByteSequence.ByteSequenceTrimException;
import org.onosproject.net.ConnectPoint;
import org.onosproject.net.DeviceId;
import org.onosproject.net.Port;
import org.onosproject.net.PortNumber;
import org.onosproject.net.device.DeviceService;
import org.onosproject.net.driver.AbstractHandlerBehaviour;
import org.onosproject.net.flow.TrafficTreatment;
import org.onosproject.net.flow.criteria.Criterion;
import org.onosproject.net.flow.instructions.Instruction;
import org.onosproject.net.flow.instructions.Instructions.GroupInstruction;
import org.onosproject.net.flow.instructions.Instructions.OutputInstruction;
import org.onosproject.net.packet.DefaultInboundPacket;
import org.onosproject.net.packet.InboundPacket;
import org.onosproject.net.packet.OutboundPacket;
import org.onosproject.net.pi.model.PiMatchFieldId;
import org.onosproject.net.pi.model.PiPipelineInterpreter;
import org.onosproject.net.pi.model.PiTableId;
import org.onosproject.net.pi.runtime.PiAction;
import org.onosproject.net.pi.runtime.PiActionParam;
import org.onosproject.net.pi.runtime.PiPacketMetadata;
import org.onosproject.net.pi.runtime.PiPacketOperation;

/**
 * ONOS's treatments and packets in terms of the Wormcast program.
 */
public class WormcastInterpreter extends AbstractHandlerBehaviour implements PiPipelineInterpreter {

    @Override
    public Optional<PiMatchFieldId> mapCriterionType(Criterion.Type type) {
        switch (type) {
            case IN_PORT:
                return Optional.of(INGRESS_PORT);
            case IPV4_DST:
                return Optional.of(IPV4_DST);
            default:
                return Optional.empty();
        }
    }

    @Override
    public Optional<PiTableId> mapFlowRuleTableId(int flowRuleTableId) {
        // Every table has a key and actions of its own, so a number says nothing.
        return Optional.empty();
    }

    @Override
    public PiAction mapTreatment(TrafficTreatment treatment, PiTableId table) throws PiInterpreterException {
        List<Instruction> instructions = treatment.allInstructions();
        if (instructions.size() == 1 && table.equals(GROUPS)
                && instructions.get(0) instanceof GroupInstruction) {
            return replicate(((GroupInstruction) instructions.get(0)).groupId().id());
        }
        throw new PiInterpreterException(format("table %s takes no treatment %s; possible: one GROUP instruction in "
                + "%s, or an action of the program", table, instructions, GROUPS));
    }

    @Override
    public Collection<PiPacketOperation> mapOutboundPacket(OutboundPacket packet) throws PiInterpreterException {
        ImmutableList.Builder<PiPacketOperation> operations = ImmutableList.builder();
        for (Instruction instruction : packet.treatment().allInstructions()) {
            if (!(instruction instanceof OutputInstruction)) {
                throw new PiInterpreterException("a packet-out takes OUTPUT alone, not " + instruction);
            }
            for (PortNumber port : ports(((OutputInstruction) instruction).port(), packet.sendThrough())) {
                operations.add(packetOut(packet.data(), port.toLong()));
            }
        }
        return operations.build();
    }

    @Override
    public InboundPacket mapInboundPacket(PiPacketOperation operation, DeviceId device)
            throws PiInterpreterException {
        PiPacketMetadata port = operation.metadatas().stream()
                .filter(metadata -> metadata.id().equals(PACKET_IN_PORT))
                .findFirst()
                .orElseThrow(() -> new PiInterpreterException("a packet-in without " + PACKET_IN_PORT));
        byte[] frame = operation.data().asArray();
        try {
            Ethernet packet = Ethernet.deserializer().deserialize(frame, 0, frame.length);
            PortNumber number = PortNumber.portNumber(unsigned(port.value().asArray()));
            return new DefaultInboundPacket(new ConnectPoint(device, number), packet, ByteBuffer.wrap(frame));
        } catch (DeserializationException e) {
            throw new PiInterpreterException(e.getMessage());
        }
    }

    @Override
    public Optional<Integer> mapLogicalPortNumber(PortNumber port) {
        return port.equals(PortNumber.CONTROLLER) ? Optional.of(CPU_PORT) : Optional.empty();
    }

    @Override
    public Optional<PiAction> getOriginalDefaultAction(PiTableId table) {
        if (!table.equals(TREE_SETS)) {
            return Optional.empty();
        }
        // All ones, as the program is loaded: p4src/CONTRACT.md.
        byte[] ones = new byte[16];
        Arrays.fill(ones, (byte) 0xff);
        return Optional.of(PiAction.builder().withId(REPLICATE_FILTERED)
                .withParameter(new PiActionParam(LOW, copyFrom(ones)))
                .withParameter(new PiActionParam(HIGH, copyFrom(ones)))
                .build());
    }

    /**
     * The action that copies to a replication group.
     *
     * @param mgid number of the replication group
     * @return action
     */
    static PiAction replicate(int mgid) {
        return PiAction.builder().withId(REPLICATE)
                .withParameter(new PiActionParam(MGID, copyFrom((short) mgid))).build();
    }

    /**
     * The action that makes an IP multicast packet a worm of a group.
     *
     * @param number group number, 0 to 65535
     * @return action
     */
    static PiAction enterGroup(int number) {
        return PiAction.builder().withId(ENTER_GROUP)
                .withParameter(new PiActionParam(GROUP_NUMBER, copyFrom((short) number))).build();
    }

    private List<PortNumber> ports(PortNumber port, DeviceId device) throws PiInterpreterException {
        if (!port.isLogical()) {
            return ImmutableList.of(port);
        }
        if (!port.equals(PortNumber.FLOOD)) {
            throw new PiInterpreterException("packet-out to port " + port + "; possible: a number, FLOOD");
        }
        List<PortNumber> all = new ArrayList<>();
        for (Port one : handler().get(DeviceService.class).getPorts(device)) {
            if (one.isEnabled() && !one.number().isLogical()) {
                all.add(one.number());
            }
        }
        return all;
    }

    private static PiPacketOperation packetOut(ByteBuffer frame, long port) throws PiInterpreterException {
        try {
            return PiPacketOperation.builder()
                    .withType(PACKET_OUT)
                    .withData(copyFrom(frame))
                    .withMetadata(PiPacketMetadata.builder()
                            .withId(PACKET_OUT_PORT)
                            .withValue(copyFrom(port).fit(PORT_BITS))
                            .build())
                    .withMetadata(PiPacketMetadata.builder()
                            .withId(PACKET_OUT_PAD)
                            .withValue(copyFrom((byte) 0).fit(PAD_BITS))
                            .build())
                    .build();
        } catch (ByteSequenceTrimException e) {
            throw new PiInterpreterException(format("port %d; possible: 0 to 511", port));
        }
    }

    private static long unsigned(byte[] bytes) {
        long value = 0;
        for (byte one : bytes) {
            value = value << Byte.SIZE | Byte.toUnsignedLong(one);
        }
        return value;
    }
}
