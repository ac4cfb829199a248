package org.wormcast.onos.fabric;

import static org.hamcrest.MatcherAssert.assertThat;
import static org.hamcrest.Matchers.is;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.SortedSet;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;

import com.google.common.collect.ImmutableSortedSet;
import com.google.common.collect.ImmutableSet;
import org.junit.Test;
import org.onlab.packet.Ip4Address;
import org.wormcast.onos.controller.FabricGroup;

/**
 * What leads from the groups that there are to those that there should be.
 */
public class GroupChangeTest {

    private static final Ip4Address ONE = Ip4Address.valueOf("239.0.1.1");
    private static final Ip4Address TWO = Ip4Address.valueOf("239.0.1.2");

    private static FabricGroup group(int id, Ip4Address address, Integer... members) {
        return new FabricGroup(id, GroupChange.PREFIX + address, "switch", ImmutableSet.copyOf(members), address);
    }

    private static List<String> changes(Map<Ip4Address, SortedSet<Integer>> wanted, FabricGroup... groups) {
        return GroupChange.between(wanted, List.of(groups)).stream().map(GroupChange::toString)
                .collect(Collectors.toList());
    }

    @Test
    public void groupsAreMadeChangedAndDeleted() {
        assertThat(changes(Map.of(ONE, ImmutableSortedSet.of(1, 2))),
                is(List.of("GroupChange{kind=CREATE, name=onos-239.0.1.1, members=[1, 2]}")));
        assertThat(changes(Map.of(ONE, ImmutableSortedSet.of(1, 2)), group(0, ONE, 1)),
                is(List.of("GroupChange{kind=SET, name=onos-239.0.1.1, members=[1, 2]}")));
        assertThat(changes(Map.of(ONE, ImmutableSortedSet.of(1, 2)), group(0, ONE, 1, 2), group(1, TWO, 3)),
                is(List.of("GroupChange{kind=DELETE, name=onos-239.0.1.2, members=[3]}")));
        assertThat(changes(Map.of(ONE, ImmutableSortedSet.of()), group(0, ONE, 1)),
                is(List.of("GroupChange{kind=DELETE, name=onos-239.0.1.1, members=[1]}")));
    }

    @Test
    public void groupsOfOthersAreLeftAlone() {
        FabricGroup mine = new FabricGroup(4, "video", "tree", ImmutableSet.of(1, 2), ONE);
        FabricGroup bare = new FabricGroup(5, "onos-images", "tree", ImmutableSet.of(1, 2), null);
        assertThat(changes(Map.of(), mine, bare), is(List.of()));
    }

    @Test
    public void doingWhatIsSaidLeavesNothingToDo() {
        Random random = new Random(7);
        Map<Integer, FabricGroup> groups = new TreeMap<>();
        for (int round = 0; round < 300; round++) {
            Map<Ip4Address, SortedSet<Integer>> wanted = new TreeMap<>();
            for (int number = 0; number < 6; number++) {
                SortedSet<Integer> members = new TreeSet<>();
                random.ints(random.nextInt(4), 0, 8).forEach(members::add);
                wanted.put(Ip4Address.valueOf(0xef000100 + number), members);
            }
            for (GroupChange change : GroupChange.between(wanted, new ArrayList<>(groups.values()))) {
                FakeController.apply(change, groups);
            }
            wanted.values().removeIf(SortedSet::isEmpty);
            assertThat(groups.values().stream().collect(Collectors.toMap(
                    group -> group.address().orElseThrow(), FabricGroup::members)), is(wanted));
        }
    }
}
