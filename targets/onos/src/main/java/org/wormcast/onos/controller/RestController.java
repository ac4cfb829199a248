package org.wormcast.onos.controller;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.IOException;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SortedSet;
import java.util.TreeMap;
import java.util.TreeSet;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.MissingNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.onlab.packet.Ip4Address;
import org.onlab.packet.MacAddress;

/**
 * A Wormcast controller at an address. docs/reference/rest.md describes its REST.
 */
public class RestController implements WormcastController {

    /** For ever, in effect; the controller answers earlier or not at all. */
    private static final Duration ANSWER_MAX = Duration.ofSeconds(90);
    private static final Duration CONNECT_MAX = Duration.ofSeconds(10);
    private static final int REFUSED_FIRST = 400;

    private final URI base;
    private final ObjectMapper mapper = new ObjectMapper();
    private final HttpClient client =
            HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).connectTimeout(CONNECT_MAX).build();

    /**
     * A controller.
     *
     * @param base its address, such as http://127.0.0.1:8080
     */
    public RestController(URI base) {
        this.base = base;
    }

    @Override
    public List<FabricHost> hosts() throws ControllerException {
        List<FabricHost> hosts = new ArrayList<>();
        for (JsonNode host : list(ask("GET", "/v1/hosts", null), "hosts")) {
            Place place = host.path("switch").isInt() && host.path("port").isInt()
                    ? new Place(host.get("switch").asInt(), host.get("port").asInt()) : null;
            MacAddress mac = host.path("mac").isTextual() ? MacAddress.valueOf(host.get("mac").asText()) : null;
            hosts.add(new FabricHost(host.path("id").asInt(), host.path("name").asText(),
                    host.path("state").asText(), place, mac));
        }
        return hosts;
    }

    @Override
    public List<FabricGroup> groups() throws ControllerException {
        List<FabricGroup> groups = new ArrayList<>();
        list(ask("GET", "/v1/groups", null), "groups").forEach(group -> groups.add(group(group)));
        return groups;
    }

    @Override
    public Map<Ip4Address, Set<Place>> igmpMembers() throws ControllerException {
        Map<Ip4Address, Set<Place>> members = new TreeMap<>();
        for (JsonNode member : ask("GET", "/v1/igmp", null).path("members")) {
            members.computeIfAbsent(Ip4Address.valueOf(member.path("group").asText()), address -> new TreeSet<>())
                    .add(new Place(member.path("switch").asInt(), member.path("port").asInt()));
        }
        return members;
    }

    @Override
    public FabricGroup create(JsonNode body) throws ControllerException {
        return group(ask("POST", "/v1/groups", body));
    }

    @Override
    public FabricGroup create(String name, String scheme, Ip4Address address, SortedSet<Integer> members)
            throws ControllerException {
        ObjectNode body = mapper.createObjectNode().put("name", name).put("scheme", scheme)
                .put("class_d", address.toString());
        body.set("members", numbers(members));
        return create(body);
    }

    @Override
    public void setMembers(String group, SortedSet<Integer> members) throws ControllerException {
        ObjectNode body = mapper.createObjectNode();
        body.set("members", numbers(members));
        ask("PUT", path(group) + "/members", body);
    }

    @Override
    public void changeMembers(String group, JsonNode members, boolean add) throws ControllerException {
        ask(add ? "POST" : "DELETE", path(group) + "/members", members);
    }

    @Override
    public void delete(String group) throws ControllerException {
        ask("DELETE", path(group), null);
    }

    @Override
    public JsonNode plan(JsonNode network) throws ControllerException {
        return ask("POST", "/v1/plan", network);
    }

    @Override
    public JsonNode status() throws ControllerException {
        return ask("GET", "/v1/status", null);
    }

    private JsonNode ask(String method, String path, JsonNode body) throws ControllerException {
        HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(base + path)).timeout(ANSWER_MAX)
                .method(method, body == null ? BodyPublishers.noBody() : BodyPublishers.ofString(body.toString()));
        if (body != null) {
            request.header("content-type", "application/json");
        }
        try {
            HttpResponse<String> response = client.send(request.build(), BodyHandlers.ofString());
            if (response.statusCode() >= REFUSED_FIRST) {
                throw new ControllerException(response.statusCode(), message(response));
            }
            return response.body().isEmpty() ? MissingNode.getInstance() : mapper.readTree(response.body());
        } catch (JsonProcessingException e) {
            throw new ControllerException(ControllerException.UNREACHABLE, base + path + " answers no JSON: " + e);
        } catch (IOException e) {
            throw new ControllerException(ControllerException.UNREACHABLE,
                    "no Wormcast controller at " + base + ": " + e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new ControllerException(ControllerException.UNREACHABLE, "interrupted");
        }
    }

    private String message(HttpResponse<String> response) {
        try {
            JsonNode error = mapper.readTree(response.body()).path("error");
            String bound = error.path("bound").asText("");
            return error.path("message").asText(response.body()) + (bound.isEmpty() ? "" : "; possible: " + bound);
        } catch (JsonProcessingException e) {
            return response.body();
        }
    }

    private static FabricGroup group(JsonNode group) {
        List<Integer> members = new ArrayList<>();
        group.path("members").forEach(member -> members.add(member.asInt()));
        Ip4Address address =
                group.path("class_d").isTextual() ? Ip4Address.valueOf(group.get("class_d").asText()) : null;
        return new FabricGroup(group.path("id").asInt(), group.path("name").asText(), group.path("scheme").asText(),
                members, address);
    }

    private static JsonNode list(JsonNode answer, String name) {
        return answer.isArray() ? answer : answer.path(name);
    }

    private ArrayNode numbers(Iterable<Integer> members) {
        ArrayNode numbers = mapper.createArrayNode();
        members.forEach(numbers::add);
        return numbers;
    }

    private static String path(String group) {
        return "/v1/groups/" + URLEncoder.encode(group, UTF_8).replace("+", "%20");
    }
}
