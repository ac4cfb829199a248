//! Members, groups and sets of action profiles.

use tonic::Code;

use super::entities_program::{
    CHOSEN, action, add, by_kind, default_of, find, id, probe, send_one, set_port_up, start,
};
use super::errors::refusal;
use super::messages::{call, delete, insert, modify, of, table};
use wormcast_switch_p4runtime::proto::p4::v1::{
    ActionProfileAction, ActionProfileActionSet, ActionProfileGroup, ActionProfileMember, Entity,
    TableAction, TableEntry, action_profile_action, action_profile_group, entity, table_action,
};

const BY_WEIGHT: &str = "ingress.by_weight";
const BY_MEMBER: &str = "ingress.by_member";

fn member(profile: &str, member_id: u32, value: u8) -> Entity {
    of(entity::Entity::ActionProfileMember(ActionProfileMember {
        action_profile_id: id(profile),
        member_id,
        action: Some(call(id("ingress.choose"), &[&[value]])),
    }))
}

/// Members with weights, and ports they watch.
fn group(
    profile: &str,
    group_id: u32,
    max_size: i32,
    members: &[(u32, i32, Option<u8>)],
) -> Entity {
    let members = members
        .iter()
        .map(|(member_id, weight, port)| action_profile_group::Member {
            member_id: *member_id,
            weight: *weight,
            watch_kind: port
                .map(|port| action_profile_group::member::WatchKind::WatchPort(vec![port])),
        });
    of(entity::Entity::ActionProfileGroup(ActionProfileGroup {
        action_profile_id: id(profile),
        group_id,
        members: members.collect(),
        max_size,
    }))
}

fn to_group(group: u32) -> Option<TableAction> {
    Some(TableAction {
        r#type: Some(table_action::Type::ActionProfileGroupId(group)),
    })
}

fn to_member(member: u32) -> Option<TableAction> {
    Some(TableAction {
        r#type: Some(table_action::Type::ActionProfileMemberId(member)),
    })
}

/// Values of `choose` with weights, and ports they watch.
fn set(actions: &[(u8, i32, Option<u8>)]) -> ActionProfileActionSet {
    let actions = actions
        .iter()
        .map(|(value, weight, port)| ActionProfileAction {
            action: Some(call(id("ingress.choose"), &[&[*value]])),
            weight: *weight,
            watch_kind: port.map(|port| action_profile_action::WatchKind::WatchPort(vec![port])),
        });
    ActionProfileActionSet {
        action_profile_actions: actions.collect(),
        ..ActionProfileActionSet::default()
    }
}

fn to_set(set: ActionProfileActionSet) -> Option<TableAction> {
    Some(TableAction {
        r#type: Some(table_action::Type::ActionProfileActionSet(set)),
    })
}

/// How often each value is chosen among probes of 4096 sizes.
async fn choices(rig: &super::rig::Rig, values: &[u8]) -> Vec<usize> {
    let mut counts = vec![0; values.len()];
    for size in 0..4096 {
        let chosen = send_one(rig, &probe(1, size, 0)).await[CHOSEN];
        let place = values.iter().position(|value| *value == chosen);
        counts[place.unwrap_or_else(|| panic!("chose {chosen}"))] += 1;
    }
    counts
}

#[tokio::test]
async fn a_group_chooses_by_weight_among_members_whose_port_is_up() {
    let (rig, mut controller) = start().await;
    let updates = vec![
        insert(member(BY_WEIGHT, 1, 11)),
        insert(member(BY_WEIGHT, 2, 22)),
        insert(group(BY_WEIGHT, 5, 0, &[(1, 1, Some(3)), (2, 3, Some(4))])),
    ];
    controller.write(updates).await.unwrap();
    add(&mut controller, by_kind("ingress.weighted", 1, to_group(5))).await;
    let counts = choices(&rig, &[11, 22]).await;
    assert!((900..1150).contains(&counts[0]), "{counts:?}");
    set_port_up(&rig, 4, false).await;
    assert_eq!(choices(&rig, &[11, 22]).await, [4096, 0]);
    set_port_up(&rig, 3, false).await;
    // No member is left: the action of a miss, of which the table has none.
    assert_eq!(choices(&rig, &[0]).await, [4096]);
    set_port_up(&rig, 3, true).await;
    set_port_up(&rig, 4, true).await;
    assert_eq!(choices(&rig, &[11, 22]).await, counts);
    // A member that changes changes in every group.
    let changed = modify(member(BY_WEIGHT, 1, 33));
    controller.write(vec![changed]).await.unwrap();
    assert_eq!(choices(&rig, &[33, 22]).await, counts);
}

/// p4c's JSON has no default action of a table with an action profile, so a miss does nothing: the
/// entry is there and has no action. That of `profiled` is constant in the P4Info.
#[tokio::test]
async fn default_entries_without_an_action_are_read_and_kept_constant() {
    let (_rig, mut controller) = start().await;
    for (name, is_const) in [("ingress.weighted", false), ("ingress.profiled", true)] {
        let found = controller.read(vec![table(default_of(name))]).await;
        let expected = TableEntry {
            is_const,
            ..default_of(name)
        };
        assert_eq!(found.unwrap(), [table(expected)]);
    }
    let all = TableEntry {
        is_default_action: true,
        ..TableEntry::default()
    };
    let found = controller.read(vec![table(all)]).await.unwrap();
    let tables = super::rig::entities().p4info.unwrap().tables;
    assert_eq!(found.len(), tables.len(), "one of each table");
    for name in ["ingress.weighted", "ingress.profiled"] {
        let set = TableEntry {
            action: action("ingress.choose", &[&[9]]),
            ..default_of(name)
        };
        let update = modify(table(set.clone()));
        if name == "ingress.profiled" {
            let message = "fixed by the program: the default action of table ingress.profiled";
            let refused = refusal(&mut controller, update).await;
            assert_eq!(refused, (Code::PermissionDenied, message.to_owned()));
            continue;
        }
        controller.write(vec![update]).await.unwrap();
        let found = controller.read(vec![table(default_of(name))]).await;
        assert_eq!(found.unwrap(), [table(set)]);
    }
}

#[tokio::test]
async fn groups_come_back_with_weights_watch_ports_and_max_size() {
    let (_rig, mut controller) = start().await;
    let old = {
        #[allow(deprecated, reason = "controllers still use it")]
        let watch = action_profile_group::member::WatchKind::Watch(7);
        let member = action_profile_group::Member {
            member_id: 2,
            weight: 1,
            watch_kind: Some(watch),
        };
        of(entity::Entity::ActionProfileGroup(ActionProfileGroup {
            action_profile_id: id(BY_WEIGHT),
            group_id: 6,
            members: vec![member],
            max_size: 1,
        }))
    };
    let state = [
        member(BY_WEIGHT, 1, 11),
        member(BY_WEIGHT, 2, 22),
        group(BY_WEIGHT, 2, 6, &[(2, 3, Some(9)), (1, 2, None)]),
        old,
    ];
    let updates = state.iter().cloned().map(insert).collect();
    controller.write(updates).await.unwrap();
    let filters = vec![
        of(entity::Entity::ActionProfileMember(
            ActionProfileMember::default(),
        )),
        group(BY_WEIGHT, 0, 0, &[]),
    ];
    assert_eq!(controller.read(filters).await.unwrap(), state);
    let one = controller.read(vec![group(BY_WEIGHT, 2, 0, &[])]).await;
    assert_eq!(one.unwrap(), state[2..3]);
    let none = controller.read(vec![group(BY_WEIGHT, 3, 0, &[])]).await;
    assert_eq!(none.unwrap_err().code(), Code::NotFound);
}

#[tokio::test]
async fn members_and_groups_that_cannot_be() {
    let (_rig, mut controller) = start().await;
    let updates = vec![
        insert(member(BY_WEIGHT, 1, 11)),
        insert(member(BY_WEIGHT, 2, 22)),
        insert(group(BY_WEIGHT, 5, 4, &[(1, 1, None)])),
        insert(member(BY_MEMBER, 1, 11)),
        insert(member("ingress.unselected", 1, 1)),
    ];
    controller.write(updates).await.unwrap();
    add(&mut controller, by_kind("ingress.weighted", 1, to_group(5))).await;
    add(
        &mut controller,
        by_kind("ingress.weighted", 2, to_member(2)),
    )
    .await;
    let weighted = "action profile `ingress.by_weight`";
    let cases = [
        (
            insert(member(BY_WEIGHT, 0, 1)),
            Code::InvalidArgument,
            format!("{weighted}: member 0 is not valid: 0 stands for all of them in a read"),
        ),
        (
            insert(member(BY_WEIGHT, 1, 1)),
            Code::AlreadyExists,
            "member 1 of action profile ingress.by_weight exists already".to_owned(),
        ),
        (
            modify(member(BY_WEIGHT, 9, 1)),
            Code::NotFound,
            "member 9 of action profile ingress.by_weight does not exist".to_owned(),
        ),
        (
            delete(member(BY_WEIGHT, 1, 1)),
            Code::FailedPrecondition,
            "member 1 of action profile ingress.by_weight cannot be deleted: group 5 refers to it"
                .to_owned(),
        ),
        (
            delete(member(BY_WEIGHT, 2, 1)),
            Code::FailedPrecondition,
            "member 2 of action profile ingress.by_weight cannot be deleted: an entry of table \
             ingress.weighted refers to it"
                .to_owned(),
        ),
        (
            delete(group(BY_WEIGHT, 5, 0, &[])),
            Code::FailedPrecondition,
            "group 5 of action profile ingress.by_weight cannot be deleted: an entry of table \
             ingress.weighted refers to it"
                .to_owned(),
        ),
        (
            insert(group(BY_WEIGHT, 6, 7, &[])),
            Code::InvalidArgument,
            format!(
                "{weighted}: group 6: max_size 7 is not valid: 0 to 6, the max_group_size of the \
                 P4Info"
            ),
        ),
        (
            modify(group(BY_WEIGHT, 5, 3, &[])),
            Code::InvalidArgument,
            "3 is not a valid greatest size of group 5 of action profile ingress.by_weight; \
             valid: 4, as when it was inserted"
                .to_owned(),
        ),
        (
            modify(group(BY_WEIGHT, 5, 4, &[(1, 5, None)])),
            Code::ResourceExhausted,
            format!("{weighted}: group 5: its weights add up to 5, which is more than 4"),
        ),
        (
            insert(group(BY_WEIGHT, 6, 0, &[(1, 7, None)])),
            Code::ResourceExhausted,
            format!("{weighted}: group 6: its weights add up to 7, which is more than 6"),
        ),
        (
            insert(group(BY_WEIGHT, 6, 0, &[(1, 1, None), (1, 1, None)])),
            Code::InvalidArgument,
            format!("{weighted}: group 6: member 1 is there twice"),
        ),
        (
            insert(group(BY_WEIGHT, 6, 0, &[(8, 1, None)])),
            Code::NotFound,
            "member 8 of action profile ingress.by_weight does not exist".to_owned(),
        ),
        (
            insert(group(BY_MEMBER, 6, 0, &[(1, 101, None)])),
            Code::InvalidArgument,
            "action profile `ingress.by_member`: group 6: member 1: weight 101 is not valid: 1 \
             to 100"
                .to_owned(),
        ),
        (
            insert(group("ingress.unselected", 1, 0, &[])),
            Code::InvalidArgument,
            "action profile `ingress.unselected`: group 1: the profile has no selector".to_owned(),
        ),
        (
            insert(table(by_kind("ingress.weighted", 3, to_group(9)))),
            Code::NotFound,
            "group 9 of the action profile of ingress.weighted does not exist".to_owned(),
        ),
    ];
    for (update, code, message) in cases {
        assert_eq!(refusal(&mut controller, update).await, (code, message));
    }
    let full = (2..=5)
        .map(|number| insert(member("ingress.unselected", number, 1)))
        .collect();
    let status = controller.write(full).await.unwrap_err();
    assert!(
        status.message().ends_with(
            "RESOURCE_EXHAUSTED: action profile ingress.unselected is full: it holds at most 4"
        ),
        "{}",
        status.message()
    );
}

#[tokio::test]
async fn a_one_shot_set_works_as_a_group_and_comes_back_as_it_was() {
    let (rig, mut controller) = start().await;
    let entry = by_kind(
        "ingress.weighted",
        1,
        to_set(set(&[(11, 1, Some(3)), (22, 1, None), (11, 2, None)])),
    );
    add(&mut controller, entry.clone()).await;
    let counts = choices(&rig, &[11, 22]).await;
    assert!((900..1150).contains(&counts[1]), "{counts:?}");
    set_port_up(&rig, 3, false).await;
    let counts = choices(&rig, &[11, 22]).await;
    assert!((1240..1490).contains(&counts[1]), "{counts:?}");
    let all = TableEntry {
        table_id: id("ingress.weighted"),
        ..TableEntry::default()
    };
    assert_eq!(find(&mut controller, all.clone()).await, [entry]);
    // Its parts are nobody else's.
    let parts = vec![
        of(entity::Entity::ActionProfileMember(
            ActionProfileMember::default(),
        )),
        of(entity::Entity::ActionProfileGroup(
            ActionProfileGroup::default(),
        )),
    ];
    assert_eq!(controller.read(parts).await.unwrap(), []);
    let mode = ActionProfileActionSet {
        action_selection_mode: 1,
        size_semantics: 2,
        ..set(&[(44, 1000, None)])
    };
    let changed = by_kind("ingress.weighted", 1, to_set(mode));
    controller
        .write(vec![modify(table(changed.clone()))])
        .await
        .unwrap();
    assert_eq!(choices(&rig, &[44]).await, [4096]);
    let found = find(&mut controller, all.clone()).await;
    assert_eq!(found, std::slice::from_ref(&changed));
    controller
        .write(vec![delete(table(changed))])
        .await
        .unwrap();
    assert_eq!(find(&mut controller, all).await, []);
    // With the last set gone, members are welcome.
    let welcome = vec![insert(member(BY_WEIGHT, 1, 11))];
    controller.write(welcome).await.unwrap();
}

#[tokio::test]
async fn a_set_in_random_mode_chooses_anew_for_each_packet() {
    let (rig, mut controller) = start().await;
    let random = ActionProfileActionSet {
        action_selection_mode: 2,
        ..set(&[(11, 1, None), (22, 3, None)])
    };
    add(
        &mut controller,
        by_kind("ingress.weighted", 1, to_set(random)),
    )
    .await;
    let mut counts = [0; 2];
    for _ in 0..2000 {
        let chosen = send_one(&rig, &probe(1, 77, 0)).await[CHOSEN];
        counts[usize::from(chosen == 22)] += 1;
    }
    assert_eq!(counts[0] + counts[1], 2000);
    assert!((400..600).contains(&counts[0]), "{counts:?}");
}

#[tokio::test]
async fn sets_that_cannot_be() {
    let (_rig, mut controller) = start().await;
    let weighted = |set| insert(table(by_kind("ingress.weighted", 1, to_set(set))));
    let counted = |set| insert(table(by_kind("ingress.counted", 1, to_set(set))));
    let what = "table `ingress.weighted`";
    let cases = [
        (
            weighted(set(&[(1, 0, None)])),
            Code::InvalidArgument,
            format!("{what}: action 1 of its set: weight 0 is not valid: at least 1"),
        ),
        (
            weighted(set(&[(1, 4, None), (2, 3, None)])),
            Code::InvalidArgument,
            format!("{what}: its set of actions: its weights add up to 7, which is more than 6"),
        ),
        (
            weighted(ActionProfileActionSet {
                action_selection_mode: 3,
                ..set(&[])
            }),
            Code::InvalidArgument,
            format!(
                "{what}: action selection mode 3 is not valid: \
                 DEFAULT_MODE_DETERMINED_BY_ACTION_SELECTOR, HASH or RANDOM"
            ),
        ),
        (
            counted(set(&[(1, 100, None); 4])),
            Code::InvalidArgument,
            "table `ingress.counted`: its set of actions: it has 4 members, which is more than 3"
                .to_owned(),
        ),
        (
            insert(table(by_kind("ingress.profiled", 1, to_set(set(&[]))))),
            Code::InvalidArgument,
            "table `ingress.profiled`: its action profile has no selector, so it takes members, \
             not sets of actions"
                .to_owned(),
        ),
    ];
    for (update, code, message) in cases {
        assert_eq!(refusal(&mut controller, update).await, (code, message));
    }
    add(
        &mut controller,
        by_kind("ingress.weighted", 1, to_set(set(&[(1, 1, None)]))),
    )
    .await;
    let (code, message) = refusal(&mut controller, insert(member(BY_WEIGHT, 1, 1))).await;
    assert_eq!(code, Code::InvalidArgument);
    assert_eq!(
        message,
        "a member or group is not a valid way to write action profile ingress.by_weight; valid: \
         action sets, as long as entries have such"
    );
    let updates = vec![insert(member(BY_MEMBER, 1, 1))];
    controller.write(updates).await.unwrap();
    let (code, message) = refusal(&mut controller, counted(set(&[]))).await;
    assert_eq!(code, Code::InvalidArgument);
    assert!(message.contains("as long as there are any"), "{message}");
}
