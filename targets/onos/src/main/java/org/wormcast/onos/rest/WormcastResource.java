package org.wormcast.onos.rest;

import java.io.IOException;
import java.io.InputStream;

import javax.ws.rs.Consumes;
import javax.ws.rs.DELETE;
import javax.ws.rs.GET;
import javax.ws.rs.POST;
import javax.ws.rs.Path;
import javax.ws.rs.PathParam;
import javax.ws.rs.Produces;
import javax.ws.rs.core.MediaType;
import javax.ws.rs.core.Response;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.onosproject.rest.AbstractWebResource;
import org.wormcast.onos.controller.ControllerException;
import org.wormcast.onos.controller.FabricGroup;
import org.wormcast.onos.controller.FabricHost;
import org.wormcast.onos.fabric.FabricService;
import org.wormcast.onos.fabric.Views;

/**
 * Groups and hosts of the fabric. Errors have the status and the words of the Wormcast controller.
 */
@Path("")
@Produces(MediaType.APPLICATION_JSON)
@Consumes(MediaType.APPLICATION_JSON)
public class WormcastResource extends AbstractWebResource {

    private static final int CREATED = 201;
    private static final int BAD_REQUEST = 400;

    /** What is asked of the fabric. */
    private interface Work {
        Response run() throws ControllerException, IOException;
    }

    /**
     * The application at a glance.
     *
     * @return 200 OK with mode, controller, members by address, and the last error
     */
    @GET
    @Path("status")
    public Response getStatus() {
        return ok(get(FabricService.class).status()).build();
    }

    /**
     * Hosts of the Wormcast controller.
     *
     * @return 200 OK with hosts
     */
    @GET
    @Path("hosts")
    public Response getHosts() {
        return answer(() -> {
            ObjectNode answer = mapper().createObjectNode();
            ArrayNode hosts = answer.putArray("hosts");
            for (FabricHost host : get(FabricService.class).hosts()) {
                hosts.add(Views.show(mapper(), host));
            }
            return ok(answer).build();
        });
    }

    /**
     * Groups of the Wormcast controller.
     *
     * @return 200 OK with groups
     */
    @GET
    @Path("groups")
    public Response getGroups() {
        return answer(() -> {
            ObjectNode answer = mapper().createObjectNode();
            ArrayNode groups = answer.putArray("groups");
            for (FabricGroup group : get(FabricService.class).groups()) {
                groups.add(Views.show(mapper(), group));
            }
            return ok(answer).build();
        });
    }

    /**
     * Makes a group.
     *
     * @param body what POST /v1/groups of the Wormcast controller takes
     * @return 201 CREATED with the group
     */
    @POST
    @Path("groups")
    public Response createGroup(InputStream body) {
        return answer(() -> Response.status(CREATED)
                .entity(Views.show(mapper(), get(FabricService.class).create(read(body))).toString()).build());
    }

    /**
     * Deletes a group.
     *
     * @param group number or name
     * @return 204 NO CONTENT
     */
    @DELETE
    @Path("groups/{group}")
    public Response deleteGroup(@PathParam("group") String group) {
        return answer(() -> {
            get(FabricService.class).delete(group);
            return Response.noContent().build();
        });
    }

    /**
     * Adds members to a group.
     *
     * @param group number or name
     * @param body  members, by number or name
     * @return 204 NO CONTENT
     */
    @POST
    @Path("groups/{group}/members")
    public Response addMembers(@PathParam("group") String group, InputStream body) {
        return answer(() -> {
            get(FabricService.class).changeMembers(group, read(body), true);
            return Response.noContent().build();
        });
    }

    /**
     * Removes members from a group.
     *
     * @param group number or name
     * @param body  members, by number or name
     * @return 204 NO CONTENT
     */
    @DELETE
    @Path("groups/{group}/members")
    public Response removeMembers(@PathParam("group") String group, InputStream body) {
        return answer(() -> {
            get(FabricService.class).changeMembers(group, read(body), false);
            return Response.noContent().build();
        });
    }

    private JsonNode read(InputStream body) throws IOException {
        return mapper().readTree(body);
    }

    private Response answer(Work work) {
        try {
            return work.run();
        } catch (ControllerException e) {
            return error(e.status(), e.getMessage());
        } catch (JsonProcessingException e) {
            return error(BAD_REQUEST, "not JSON: " + e.getOriginalMessage());
        } catch (IOException e) {
            return error(BAD_REQUEST, e.toString());
        }
    }

    private Response error(int status, String message) {
        ObjectNode body = mapper().createObjectNode().put("code", status).put("message", message);
        return Response.status(status).entity(body.toString()).build();
    }
}
