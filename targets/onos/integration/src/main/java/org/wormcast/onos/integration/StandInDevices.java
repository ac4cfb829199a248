package org.wormcast.onos.integration;

import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.LongStream;

import org.onlab.packet.ChassisId;
import org.onosproject.net.Device;
import org.onosproject.net.DeviceId;
import org.onosproject.net.Link;
import org.onosproject.net.LinkKey;
import org.onosproject.net.MastershipRole;
import org.onosproject.net.PortNumber;
import org.onosproject.net.config.NetworkConfigEvent;
import org.onosproject.net.config.NetworkConfigListener;
import org.onosproject.net.config.NetworkConfigService;
import org.onosproject.net.config.basics.BasicDeviceConfig;
import org.onosproject.net.config.basics.BasicLinkConfig;
import org.onosproject.net.device.DefaultDeviceDescription;
import org.onosproject.net.device.DefaultPortDescription;
import org.onosproject.net.device.DeviceProvider;
import org.onosproject.net.device.DeviceProviderRegistry;
import org.onosproject.net.device.DeviceProviderService;
import org.onosproject.net.device.PortDescription;
import org.onosproject.net.link.DefaultLinkDescription;
import org.onosproject.net.link.LinkProvider;
import org.onosproject.net.link.LinkProviderRegistry;
import org.onosproject.net.link.LinkProviderService;
import org.onosproject.net.pi.model.PiPipeconfId;
import org.onosproject.net.pi.service.PiPipeconfService;
import org.onosproject.net.provider.AbstractProvider;
import org.onosproject.net.provider.ProviderId;
import org.osgi.service.component.annotations.Activate;
import org.osgi.service.component.annotations.Component;
import org.osgi.service.component.annotations.Deactivate;
import org.osgi.service.component.annotations.Reference;
import org.osgi.service.component.annotations.ReferenceCardinality;

/**
 * Devices of eight ports, and links between them, that the network configuration names {@code standin:…}. Nothing is
 * behind them: what ONOS would have them hold stays in ONOS, where a test reads it.
 */
@Component(immediate = true)
public class StandInDevices extends AbstractProvider implements DeviceProvider {

    private static final String SCHEME = "standin";
    private static final long PORTS = 8;

    private final NetworkConfigListener listener = this::configured;
    private final Links links = new Links();

    @Reference(cardinality = ReferenceCardinality.MANDATORY)
    protected NetworkConfigService configs;
    @Reference(cardinality = ReferenceCardinality.MANDATORY)
    protected DeviceProviderRegistry devices;
    @Reference(cardinality = ReferenceCardinality.MANDATORY)
    protected LinkProviderRegistry linkProviders;
    @Reference(cardinality = ReferenceCardinality.MANDATORY)
    protected PiPipeconfService pipeconfs;

    private DeviceProviderService deviceService;
    private LinkProviderService linkService;

    /** A provider of devices. */
    public StandInDevices() {
        super(new ProviderId(SCHEME, "org.wormcast.onos.integration"));
    }

    @Activate
    protected void activate() {
        deviceService = devices.register(this);
        linkService = linkProviders.register(links);
        configs.addListener(listener);
        configs.getSubjects(DeviceId.class, BasicDeviceConfig.class).forEach(this::connect);
        configs.getSubjects(LinkKey.class, BasicLinkConfig.class).forEach(this::connect);
    }

    @Deactivate
    protected void deactivate() {
        configs.removeListener(listener);
        linkProviders.unregister(links);
        devices.unregister(this);
    }

    @Override
    public void triggerProbe(DeviceId device) {
    }

    @Override
    public void roleChanged(DeviceId device, MastershipRole role) {
        deviceService.receivedRoleReply(device, role, role);
    }

    @Override
    public boolean isReachable(DeviceId device) {
        return true;
    }

    @Override
    public void changePortState(DeviceId device, PortNumber port, boolean enable) {
    }

    private void configured(NetworkConfigEvent event) {
        boolean isThere = event.type() == NetworkConfigEvent.Type.CONFIG_ADDED
                || event.type() == NetworkConfigEvent.Type.CONFIG_UPDATED;
        if (isThere && event.configClass().equals(BasicDeviceConfig.class)) {
            connect((DeviceId) event.subject());
        } else if (event.configClass().equals(BasicLinkConfig.class)) {
            LinkKey link = (LinkKey) event.subject();
            if (isThere) {
                connect(link);
            } else if (event.type() == NetworkConfigEvent.Type.CONFIG_REMOVED) {
                linkService.linkVanished(new DefaultLinkDescription(link.src(), link.dst(), Link.Type.DIRECT));
            }
        }
    }

    private void connect(DeviceId device) {
        BasicDeviceConfig config = configs.getConfig(device, BasicDeviceConfig.class);
        if (!device.uri().getScheme().equals(SCHEME) || config.pipeconf() == null) {
            return;
        }
        pipeconfs.bindToDevice(new PiPipeconfId(config.pipeconf()), device);
        deviceService.deviceConnected(device, new DefaultDeviceDescription(
                device.uri(), Device.Type.SWITCH, "Wormcast", "stand-in", "0.1.0", "-", new ChassisId()));
        List<PortDescription> ports = LongStream.range(0, PORTS)
                .mapToObj(port -> DefaultPortDescription.builder().withPortNumber(PortNumber.portNumber(port))
                        .isEnabled(true).build())
                .collect(Collectors.toList());
        deviceService.updatePorts(device, ports);
    }

    private void connect(LinkKey link) {
        if (link.src().deviceId().uri().getScheme().equals(SCHEME)) {
            linkService.linkDetected(new DefaultLinkDescription(link.src(), link.dst(), Link.Type.DIRECT));
        }
    }

    /** Links of the same network configuration. */
    private static final class Links extends AbstractProvider implements LinkProvider {
        private Links() {
            super(new ProviderId(SCHEME, "org.wormcast.onos.integration.links"));
        }
    }
}
