package org.wormcast.onos.pipeconf;

import static org.hamcrest.MatcherAssert.assertThat;
import static org.hamcrest.Matchers.hasItem;
import static org.hamcrest.Matchers.is;
import static org.junit.Assert.assertTrue;

import java.io.InputStream;
import java.lang.reflect.Field;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

import org.junit.Test;
import org.onosproject.net.pi.model.PiActionId;
import org.onosproject.net.pi.model.PiActionModel;
import org.onosproject.net.pi.model.PiActionParamId;
import org.onosproject.net.pi.model.PiMatchFieldId;
import org.onosproject.net.pi.model.PiPacketMetadataId;
import org.onosproject.net.pi.model.PiPacketOperationModel;
import org.onosproject.net.pi.model.PiPacketOperationType;
import org.onosproject.net.pi.model.PiPipeconf;
import org.onosproject.net.pi.model.PiPipelineModel;
import org.onosproject.net.pi.model.PiTableId;
import org.onosproject.net.pi.model.PiTableModel;

/**
 * The names and numbers here are those of the compiled program.
 */
public class P4NamesTest {

    private static final Path IDS = Path.of("..", "..", "p4src", "shared", "ids.p4");

    private final PiPipeconf pipeconf = build();
    private final PiPipelineModel model = pipeconf.pipelineModel();

    private static PiPipeconf build() {
        try {
            return PipeconfLoader.build();
        } catch (Exception e) {
            throw new AssertionError(e);
        }
    }

    private static Set<Object> constants(Class<?> kind) throws IllegalAccessException {
        Set<Object> found = new HashSet<>();
        for (Field field : P4Names.class.getFields()) {
            if (field.getType() == kind) {
                found.add(field.get(null));
            }
        }
        return found;
    }

    @Test
    public void tablesAndKeysAreThoseOfTheProgram() throws IllegalAccessException {
        Set<Object> tables = new HashSet<>();
        Set<Object> fields = new HashSet<>();
        for (PiTableModel table : model.tables()) {
            tables.add(table.id());
            boolean hasNone = Set.of(P4Names.TRACE, P4Names.WORMHOLE).contains(table.id());
            int keys = hasNone ? 0
                    : table.id().equals(P4Names.GATHER) ? 3
                    : table.id().equals(P4Names.GROUP_SENDERS) ? 2 : 1;
            assertThat("keys of " + table.id(), table.matchFields().size(), is(keys));
            table.matchFields().forEach(field -> fields.add(field.id()));
        }
        assertThat(constants(PiTableId.class), is(tables));
        assertThat(constants(PiMatchFieldId.class), is(fields));
    }

    @Test
    public void actionsAndParametersAreThoseOfTheProgram() throws IllegalAccessException {
        Set<Object> actions = new HashSet<>();
        Set<Object> parameters = new HashSet<>();
        for (PiTableModel table : model.tables()) {
            for (PiActionModel action : table.actions()) {
                actions.add(action.id());
                action.params().forEach(parameter -> parameters.add(parameter.id()));
            }
        }
        constants(PiActionId.class).forEach(action -> assertThat(actions, hasItem(action)));
        constants(PiActionParamId.class).forEach(parameter -> assertThat(parameters, hasItem(parameter)));
    }

    @Test
    public void packetHeadersAreThoseOfTheProgram() throws IllegalAccessException {
        Set<Object> metadata = new HashSet<>();
        for (PiPacketOperationType type : PiPacketOperationType.values()) {
            PiPacketOperationModel operation = model.packetOperationModel(type).orElseThrow();
            operation.metadatas().forEach(one -> {
                metadata.add(one.id());
                assertThat(one.bitWidth(),
                        is(one.id().equals(P4Names.PACKET_OUT_PAD) ? P4Names.PAD_BITS : P4Names.PORT_BITS));
            });
        }
        assertThat(constants(PiPacketMetadataId.class), is(metadata));
    }

    @Test
    public void numbersAreThoseOfTheProgram() throws Exception {
        String ids = Files.readString(IDS);
        assertThat(number(ids, "CPU_PORT"), is(P4Names.CPU_PORT));
        assertThat(model.table(P4Names.GROUPS).orElseThrow().matchField(P4Names.GROUP).orElseThrow().bitWidth(),
                is(P4Names.GROUP_BITS));
    }

    @Test
    public void switchesGetTheCompiledProgram() throws Exception {
        try (InputStream json = pipeconf.extension(PiPipeconf.ExtensionType.BMV2_JSON).orElseThrow();
             InputStream info = pipeconf.extension(PiPipeconf.ExtensionType.P4_INFO_TEXT).orElseThrow()) {
            byte[] compiled = Files.readAllBytes(Path.of("..", "..", "p4src", "compiled", "wormcast.json"));
            assertThat(json.readAllBytes(), is(compiled));
            String text = new String(info.readAllBytes(), StandardCharsets.UTF_8);
            assertTrue(text.contains("ingress.class_d") && !text.contains("initial_default_action"));
        }
    }

    private static int number(String source, String name) {
        Matcher found = Pattern.compile("\\b" + name + "\\s*=\\s*(?:\\d+w)?(0x[0-9a-fA-F]+|\\d+)").matcher(source);
        assertTrue(name + " is not in " + IDS, found.find());
        return Integer.decode(found.group(1));
    }
}
