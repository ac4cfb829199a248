package org.wormcast.onos.multicast;

import java.util.Map;
import java.util.Set;

import org.onlab.packet.Ip4Address;

/**
 * Who wants the packets of which IP multicast address. All nodes of an ONOS cluster share it.
 */
public interface MulticastClaims {

    /** Addresses, and members of one, that are kept; what is beyond is refused and logged. */
    int ADDRESSES_MAX = 4096;
    /** Members of one address by one source. */
    int MEMBERS_MAX = 4096;

    /**
     * Adds a member, by one source.
     *
     * @param source  who says so
     * @param address IP multicast address
     * @param member  who wants its packets
     */
    void join(Source source, Ip4Address address, Member member);

    /**
     * Removes a member, by one source.
     *
     * @param source  who says so
     * @param address IP multicast address
     * @param member  who does not want its packets any more
     */
    void leave(Source source, Ip4Address address, Member member);

    /**
     * Sets all that one source says of an address.
     *
     * @param source  who says so
     * @param address IP multicast address
     * @param members who wants its packets
     */
    void set(Source source, Ip4Address address, Set<Member> members);

    /**
     * Sets all that one source says.
     *
     * @param source  who says so
     * @param members who wants packets, by address; all other addresses have no members by this source
     */
    void setAll(Source source, Map<Ip4Address, Set<Member>> members);

    /**
     * Who wants packets, whoever says so.
     *
     * @return members by address; only addresses that have some
     */
    Map<Ip4Address, Set<Member>> members();

    /**
     * Has this run after each change, on any node.
     *
     * @param listener what to run; it must not wait
     */
    void addListener(Runnable listener);

    /**
     * The contrary of {@link #addListener}.
     *
     * @param listener what not to run any more
     */
    void removeListener(Runnable listener);
}
