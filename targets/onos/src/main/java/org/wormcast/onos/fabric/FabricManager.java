package org.wormcast.onos.fabric;

import static java.util.concurrent.Executors.newSingleThreadScheduledExecutor;
import static org.onlab.util.Tools.groupedThreads;
import static org.onosproject.net.config.basics.SubjectFactories.APP_SUBJECT_FACTORY;

import java.util.List;
import java.util.Optional;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.onosproject.cluster.ClusterService;
import org.onosproject.cluster.LeadershipService;
import org.onosproject.core.ApplicationId;
import org.onosproject.core.CoreService;
import org.onosproject.net.config.ConfigFactory;
import org.onosproject.net.config.NetworkConfigEvent;
import org.onosproject.net.config.NetworkConfigListener;
import org.onosproject.net.config.NetworkConfigRegistry;
import org.onosproject.net.device.DeviceService;
import org.onosproject.net.flow.FlowRuleService;
import org.onosproject.net.flowobjective.FlowObjectiveService;
import org.onosproject.net.group.GroupService;
import org.onosproject.net.host.HostProviderRegistry;
import org.onosproject.net.host.HostProviderService;
import org.onosproject.net.host.HostService;
import org.onosproject.net.link.LinkService;
import org.onosproject.net.pi.service.PiPipeconfService;
import org.osgi.service.component.annotations.Activate;
import org.osgi.service.component.annotations.Component;
import org.osgi.service.component.annotations.Deactivate;
import org.osgi.service.component.annotations.Reference;
import org.osgi.service.component.annotations.ReferenceCardinality;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.wormcast.onos.controller.ControllerException;
import org.wormcast.onos.controller.FabricGroup;
import org.wormcast.onos.controller.FabricHost;
import org.wormcast.onos.controller.RestController;
import org.wormcast.onos.controller.WormcastController;
import org.wormcast.onos.multicast.MulticastClaims;
import org.wormcast.onos.pipeconf.PipeconfLoader;

/**
 * Keeps the fabric in step with what ONOS knows: at every change, and every so often.
 *
 * <p>One node of an ONOS cluster does so, the leader of the topic {@code org.wormcast.onos}.
 */
@Component(immediate = true, service = FabricService.class)
public class FabricManager implements FabricService {

    /** Rounds that wait for something follow so soon. */
    private static final long WAIT_MS = 100;

    private final Logger log = LoggerFactory.getLogger(getClass());
    private final ObjectMapper mapper = new ObjectMapper();
    private final Runnable claimsListener = this::request;
    private final NetworkConfigListener configListener = this::configured;
    private final ConfigFactory<ApplicationId, WormcastConfig> configFactory =
            new ConfigFactory<>(APP_SUBJECT_FACTORY, WormcastConfig.class, WormcastConfig.KEY) {
                @Override
                public WormcastConfig createConfig() {
                    return new WormcastConfig();
                }
            };
    private final AgentHosts provider = new AgentHosts();
    private final AtomicBoolean requested = new AtomicBoolean();

    @Reference(cardinality = ReferenceCardinality.MANDATORY)
    protected CoreService core;
    @Reference(cardinality = ReferenceCardinality.MANDATORY)
    protected NetworkConfigRegistry configs;
    @Reference(cardinality = ReferenceCardinality.MANDATORY)
    protected ClusterService cluster;
    @Reference(cardinality = ReferenceCardinality.MANDATORY)
    protected LeadershipService leadership;
    @Reference(cardinality = ReferenceCardinality.MANDATORY)
    protected MulticastClaims claims;
    @Reference(cardinality = ReferenceCardinality.MANDATORY)
    protected HostProviderRegistry hostProviders;
    @Reference(cardinality = ReferenceCardinality.MANDATORY)
    protected PiPipeconfService pipeconfs;
    @Reference(cardinality = ReferenceCardinality.MANDATORY)
    protected DeviceService deviceService;
    @Reference(cardinality = ReferenceCardinality.MANDATORY)
    protected LinkService linkService;
    @Reference(cardinality = ReferenceCardinality.MANDATORY)
    protected HostService hostService;
    @Reference(cardinality = ReferenceCardinality.MANDATORY)
    protected FlowObjectiveService objectives;
    @Reference(cardinality = ReferenceCardinality.MANDATORY)
    protected FlowRuleService flowRules;
    @Reference(cardinality = ReferenceCardinality.MANDATORY)
    protected GroupService groupService;

    private ApplicationId app;
    private HostProviderService hostProvider;
    private ScheduledExecutorService executor;
    private volatile WormcastConfig config;
    private volatile WormcastController controller;
    private volatile Synchronization synchronization;
    private volatile String lastError;
    private volatile long rounds;

    @Activate
    protected void activate() {
        app = core.registerApplication(WormcastConfig.APP);
        configs.registerConfigFactory(configFactory);
        hostProvider = hostProviders.register(provider);
        configure();
        executor = newSingleThreadScheduledExecutor(groupedThreads("onos/wormcast", "fabric", log));
        configs.addListener(configListener);
        leadership.runForLeadership(app.name());
        claims.addListener(claimsListener);
        executor.execute(this::repeat);
        log.info("Started");
    }

    @Deactivate
    protected void deactivate() throws InterruptedException {
        claims.removeListener(claimsListener);
        configs.removeListener(configListener);
        executor.shutdownNow();
        // A round may be under way, and what it does must not come after what follows here.
        executor.awaitTermination(1, TimeUnit.MINUTES);
        synchronization.close();
        leadership.withdraw(app.name());
        hostProviders.unregister(provider);
        configs.unregisterConfigFactory(configFactory);
        log.info("Stopped");
    }

    @Override
    public ObjectNode status() {
        ObjectNode status = mapper.createObjectNode()
                .put("mode", config.mode().text())
                .put("controller", config.controller().toString())
                .put("leader", isLeader())
                .put("rounds", rounds)
                .put("pipeconf", pipeconfs.getPipeconf(PipeconfLoader.PIPECONF_ID).isPresent()
                        ? PipeconfLoader.PIPECONF_ID.id() : null)
                .put("error", lastError);
        ObjectNode members = status.putObject("members");
        claims.members().forEach((address, wanted) ->
                wanted.forEach(member -> members.withArray(address.toString()).add(member.toString())));
        ObjectNode unknown = status.putObject("unknown_members");
        Synchronization now = synchronization;
        if (now instanceof Beside) {
            ((Beside) now).unknown().forEach((address, missing) ->
                    missing.forEach(member -> unknown.withArray(address.toString()).add(member.toString())));
        }
        return status;
    }

    @Override
    public List<FabricHost> hosts() throws ControllerException {
        return controller.hosts();
    }

    @Override
    public List<FabricGroup> groups() throws ControllerException {
        return controller.groups();
    }

    @Override
    public FabricGroup create(JsonNode body) throws ControllerException {
        return controller.create(body);
    }

    @Override
    public void changeMembers(String group, JsonNode members, boolean add) throws ControllerException {
        controller.changeMembers(group, members, add);
    }

    @Override
    public void delete(String group) throws ControllerException {
        controller.delete(group);
    }

    private void configured(NetworkConfigEvent event) {
        if (event.configClass().equals(WormcastConfig.class)) {
            executor.execute(() -> {
                synchronization.close();
                configure();
            });
            request();
        }
    }

    private void configure() {
        config = Optional.ofNullable(configs.getConfig(app, WormcastConfig.class))
                .orElseGet(() -> WormcastConfig.defaults(app));
        controller = new RestController(config.controller());
        synchronization = config.mode() == Mode.BESIDE
                ? new Beside(controller, config, claims, provider, hostProvider)
                : new Alone(controller, claims, pipeconfs, deviceService, linkService, hostService,
                        new EntryInstaller(app, objectives, flowRules, groupService));
        log.info("Mode {}, controller {}", config.mode().text(), config.controller());
    }

    /** Changes that come while a round is waiting to begin share it. */
    private void request() {
        if (requested.compareAndSet(false, true)) {
            executor.execute(this::round);
        }
    }

    private void repeat() {
        boolean waits = round();
        executor.schedule(this::repeat, waits ? Math.min(WAIT_MS, config.pollMs()) : config.pollMs(),
                TimeUnit.MILLISECONDS);
    }

    private boolean round() {
        requested.set(false);
        if (!isLeader()) {
            return false;
        }
        try {
            boolean waits = synchronization.run();
            lastError = null;
            return waits;
        } catch (ControllerException e) {
            report(e.getMessage(), null);
        } catch (RuntimeException e) {
            // The next round must come whatever was wrong with this one.
            report(e.toString(), e);
        } finally {
            rounds++;
        }
        return false;
    }

    /** Once, and not at each round again. */
    private void report(String error, Exception cause) {
        if (!error.equals(lastError)) {
            log.warn("{}", error, cause);
        }
        lastError = error;
    }

    private boolean isLeader() {
        return cluster.getLocalNode().id().equals(leadership.getLeader(app.name()));
    }
}
