package org.wormcast.onos.pipeconf;

import java.net.URL;

import org.onosproject.net.behaviour.Pipeliner;
import org.onosproject.net.pi.model.DefaultPiPipeconf;
import org.onosproject.net.pi.model.PiPipeconf;
import org.onosproject.net.pi.model.PiPipeconf.ExtensionType;
import org.onosproject.net.pi.model.PiPipeconfId;
import org.onosproject.net.pi.model.PiPipelineInterpreter;
import org.onosproject.net.pi.service.PiPipeconfService;
import org.onosproject.p4runtime.model.P4InfoParser;
import org.onosproject.p4runtime.model.P4InfoParserException;
import org.osgi.service.component.annotations.Activate;
import org.osgi.service.component.annotations.Component;
import org.osgi.service.component.annotations.Deactivate;
import org.osgi.service.component.annotations.Reference;
import org.osgi.service.component.annotations.ReferenceCardinality;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Registers the pipeconf of the Wormcast program while the application is active.
 */
@Component(immediate = true)
public class PipeconfLoader {

    /** What a device names to get the Wormcast program. */
    public static final PiPipeconfId PIPECONF_ID = new PiPipeconfId("org.wormcast.pipeconf");

    private static final String P4INFO = "/p4/wormcast.p4info.txtpb";
    private static final String BMV2_JSON = "/p4/wormcast.json";

    private final Logger log = LoggerFactory.getLogger(getClass());

    @Reference(cardinality = ReferenceCardinality.MANDATORY)
    protected PiPipeconfService pipeconfService;

    @Activate
    protected void activate() throws P4InfoParserException {
        // What is left of an application that ended without being deactivated has its old classes.
        if (pipeconfService.getPipeconf(PIPECONF_ID).isPresent()) {
            pipeconfService.unregister(PIPECONF_ID);
        }
        pipeconfService.register(build());
        log.info("Registered {}", PIPECONF_ID);
    }

    @Deactivate
    protected void deactivate() {
        if (pipeconfService.getPipeconf(PIPECONF_ID).isPresent()) {
            pipeconfService.unregister(PIPECONF_ID);
        }
    }

    /**
     * The pipeconf, from the compiled program in this bundle.
     *
     * @return pipeconf
     * @throws P4InfoParserException if the P4Info cannot be read
     */
    public static PiPipeconf build() throws P4InfoParserException {
        URL info = PipeconfLoader.class.getResource(P4INFO);
        return DefaultPiPipeconf.builder()
                .withId(PIPECONF_ID)
                .withPipelineModel(P4InfoParser.parse(info))
                .addBehaviour(PiPipelineInterpreter.class, WormcastInterpreter.class)
                .addBehaviour(Pipeliner.class, WormcastPipeliner.class)
                .addExtension(ExtensionType.P4_INFO_TEXT, info)
                .addExtension(ExtensionType.BMV2_JSON, PipeconfLoader.class.getResource(BMV2_JSON))
                .build();
    }
}
