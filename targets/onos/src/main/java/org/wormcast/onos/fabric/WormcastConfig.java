package org.wormcast.onos.fabric;

import java.net.URI;
import java.util.Arrays;
import java.util.Iterator;
import java.util.Locale;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.google.common.collect.BiMap;
import com.google.common.collect.HashBiMap;
import org.onosproject.core.ApplicationId;
import org.onosproject.net.DeviceId;
import org.onosproject.net.config.Config;
import org.onosproject.net.config.InvalidFieldException;

/**
 * Configuration of the application, at {@code apps/org.wormcast.onos/wormcast} of the network configuration.
 */
public class WormcastConfig extends Config<ApplicationId> {

    /** Name of the application. */
    public static final String APP = "org.wormcast.onos";
    /** Key of its configuration. */
    public static final String KEY = "wormcast";

    private static final String CONTROLLER = "controller";
    private static final String MODE = "mode";
    private static final String SCHEME = "scheme";
    private static final String POLL_MS = "pollMs";
    private static final String SWITCHES = "switches";

    private static final String CONTROLLER_DEFAULT = "http://127.0.0.1:8080";
    private static final String SCHEME_DEFAULT = "switch";
    private static final long POLL_MS_DEFAULT = 2000;
    private static final long POLL_MS_MIN = 100;
    private static final long POLL_MS_MAX = 3_600_000;

    /**
     * What holds where nothing is configured.
     *
     * @param app the application
     * @return configuration
     */
    static WormcastConfig defaults(ApplicationId app) {
        WormcastConfig config = new WormcastConfig();
        config.init(app, KEY, JsonNodeFactory.instance.objectNode(), new ObjectMapper(), changed -> { });
        return config;
    }

    @Override
    public boolean isValid() {
        if (!hasOnlyFields(CONTROLLER, MODE, SCHEME, POLL_MS, SWITCHES)) {
            return false;
        }
        isString(CONTROLLER, FieldPresence.OPTIONAL, "https?://[^/?#]+(:[0-9]+)?/?");
        isString(SCHEME, FieldPresence.OPTIONAL);
        isIntegralNumber(POLL_MS, FieldPresence.OPTIONAL, POLL_MS_MIN, POLL_MS_MAX);
        String mode = get(MODE, Mode.BESIDE.text());
        if (Arrays.stream(Mode.values()).noneMatch(one -> one.text().equals(mode))) {
            throw new InvalidFieldException(MODE, mode + "; possible: beside, alone");
        }
        switches();
        return true;
    }

    /**
     * Address of the Wormcast controller's REST.
     *
     * @return address without a path
     */
    public URI controller() {
        String text = get(CONTROLLER, CONTROLLER_DEFAULT);
        return URI.create(text.endsWith("/") ? text.substring(0, text.length() - 1) : text);
    }

    /**
     * Who programs the switches.
     *
     * @return mode
     */
    public Mode mode() {
        return Mode.valueOf(get(MODE, Mode.BESIDE.text()).toUpperCase(Locale.ROOT));
    }

    /**
     * Scheme of the groups that this application makes for addresses.
     *
     * @return name of a scheme of Wormcast
     */
    public String scheme() {
        return get(SCHEME, SCHEME_DEFAULT);
    }

    /**
     * How often the Wormcast controller is asked for its hosts and groups.
     *
     * @return milliseconds
     */
    public long pollMs() {
        return get(POLL_MS, POLL_MS_DEFAULT);
    }

    /**
     * What ONOS calls the switches of the Wormcast controller, where it is not {@code wormcast:<number>}.
     *
     * @return devices by number of the switch
     */
    public BiMap<Integer, DeviceId> switches() {
        BiMap<Integer, DeviceId> devices = HashBiMap.create();
        JsonNode given = object == null ? null : object.get(SWITCHES);
        if (given == null) {
            return devices;
        }
        for (Iterator<String> names = given.fieldNames(); names.hasNext();) {
            String name = names.next();
            try {
                devices.put(Integer.valueOf(name), DeviceId.deviceId(given.get(name).asText()));
            } catch (IllegalArgumentException e) {
                throw new InvalidFieldException(SWITCHES, name + ": " + given.get(name)
                        + "; possible: a device of ONOS for each number of a switch, each once");
            }
        }
        return devices;
    }
}
