package org.wormcast.onos.multicast;

import org.onosproject.net.packet.InboundPacket;
import org.onosproject.net.packet.PacketContext;
import org.onosproject.net.packet.PacketProcessor;
import org.onosproject.net.packet.PacketService;
import org.osgi.service.component.annotations.Activate;
import org.osgi.service.component.annotations.Component;
import org.osgi.service.component.annotations.Deactivate;
import org.osgi.service.component.annotations.Reference;
import org.osgi.service.component.annotations.ReferenceCardinality;

/**
 * Takes IGMP reports from the packets that devices of ONOS send to it.
 *
 * <p>It requests no packets: switches with the Wormcast program send IGMP by themselves, and for others an
 * application of ONOS that speaks IGMP does so.
 */
@Component(immediate = true)
public class IgmpListener {

    private final PacketProcessor processor = this::process;

    @Reference(cardinality = ReferenceCardinality.MANDATORY)
    protected PacketService packets;

    @Reference(cardinality = ReferenceCardinality.MANDATORY)
    protected MulticastClaims claims;

    @Activate
    protected void activate() {
        packets.addProcessor(processor, PacketProcessor.director(1));
    }

    @Deactivate
    protected void deactivate() {
        packets.removeProcessor(processor);
    }

    private void process(PacketContext context) {
        InboundPacket packet = context.inPacket();
        Member member = Member.at(packet.receivedFrom());
        IgmpReports.read(packet.parsed()).forEach((address, wants) -> {
            if (wants) {
                claims.join(Source.IGMP, address, member);
            } else {
                claims.leave(Source.IGMP, address, member);
            }
        });
    }
}
