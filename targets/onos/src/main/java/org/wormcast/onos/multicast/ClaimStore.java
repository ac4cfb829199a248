package org.wormcast.onos.multicast;

import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.UnaryOperator;
import java.util.stream.Collectors;

import com.google.common.collect.ImmutableSet;
import org.onlab.packet.Ip4Address;
import org.onlab.util.KryoNamespace;
import org.onosproject.store.serializers.KryoNamespaces;
import org.onosproject.store.service.ConsistentMap;
import org.onosproject.store.service.MapEventListener;
import org.onosproject.store.service.Serializer;
import org.onosproject.store.service.StorageService;
import org.onosproject.store.service.Versioned;
import org.osgi.service.component.annotations.Activate;
import org.osgi.service.component.annotations.Component;
import org.osgi.service.component.annotations.Deactivate;
import org.osgi.service.component.annotations.Reference;
import org.osgi.service.component.annotations.ReferenceCardinality;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Claims in a map of the cluster: {@code source|address} to members, as text.
 */
@Component(immediate = true, service = MulticastClaims.class)
public class ClaimStore implements MulticastClaims {

    private final Logger log = LoggerFactory.getLogger(getClass());
    private final Map<Runnable, MapEventListener<String, Set<String>>> listeners = new ConcurrentHashMap<>();

    @Reference(cardinality = ReferenceCardinality.MANDATORY)
    protected StorageService storage;

    private ConsistentMap<String, Set<String>> claims;

    @Activate
    protected void activate() {
        claims = storage.<String, Set<String>>consistentMapBuilder()
                .withName("wormcast-claims")
                .withSerializer(Serializer.using(KryoNamespace.newBuilder().register(KryoNamespaces.API)
                        .build("wormcast-claims")))
                .build();
    }

    @Deactivate
    protected void deactivate() {
        listeners.values().forEach(claims::removeListener);
        listeners.clear();
    }

    @Override
    public void join(Source source, Ip4Address address, Member member) {
        change(source, address, members -> {
            members.add(member.toString());
            return members;
        });
    }

    @Override
    public void leave(Source source, Ip4Address address, Member member) {
        change(source, address, members -> {
            members.remove(member.toString());
            return members;
        });
    }

    @Override
    public void set(Source source, Ip4Address address, Set<Member> wanted) {
        Set<String> texts = wanted.stream().map(Member::toString).collect(Collectors.toSet());
        change(source, address, members -> texts);
    }

    @Override
    public void setAll(Source source, Map<Ip4Address, Set<Member>> members) {
        String prefix = source + "|";
        for (String key : ImmutableSet.copyOf(claims.keySet())) {
            Ip4Address address = address(key);
            if (key.startsWith(prefix) && !members.containsKey(address)) {
                set(source, address, ImmutableSet.of());
            }
        }
        members.forEach((address, wanted) -> set(source, address, wanted));
    }

    @Override
    public Map<Ip4Address, Set<Member>> members() {
        Map<Ip4Address, Set<Member>> members = new TreeMap<>();
        claims.entrySet().forEach(entry -> entry.getValue().value().forEach(member ->
                members.computeIfAbsent(address(entry.getKey()), address -> new HashSet<>())
                        .add(Member.parse(member))));
        return members;
    }

    @Override
    public void addListener(Runnable listener) {
        MapEventListener<String, Set<String>> adapter = event -> listener.run();
        listeners.put(listener, adapter);
        claims.addListener(adapter);
    }

    @Override
    public void removeListener(Runnable listener) {
        MapEventListener<String, Set<String>> adapter = listeners.remove(listener);
        if (adapter != null) {
            claims.removeListener(adapter);
        }
    }

    /** Nothing is written where nothing changes, so that who repeats itself wakes nobody. */
    private void change(Source source, Ip4Address address, UnaryOperator<Set<String>> change) {
        String key = source + "|" + address;
        Versioned<Set<String>> versioned = claims.get(key);
        Set<String> before = versioned == null ? ImmutableSet.of() : versioned.value();
        Set<String> after = change.apply(new HashSet<>(before));
        if (after.equals(before)) {
            return;
        }
        if (after.size() > MEMBERS_MAX || versioned == null && claims.size() >= ADDRESSES_MAX) {
            log.warn("Refused members of {}: {} addresses, {} members of one; possible: {}, {}", address,
                    claims.size(), after.size(), ADDRESSES_MAX, MEMBERS_MAX);
            return;
        }
        // Who reads and writes at the same time on another node must not be overwritten.
        Versioned<Set<String>> written = claims.compute(key, (same, now) ->
                change.apply(new HashSet<>(now == null ? ImmutableSet.of() : now)));
        if (written.value().isEmpty()) {
            claims.remove(key, written.version());
        }
    }

    private static Ip4Address address(String key) {
        return Ip4Address.valueOf(key.substring(key.indexOf('|') + 1));
    }
}
