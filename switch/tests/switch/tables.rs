//! Entries that the program brings: §"Constant Tables", §"Preinitialized tables".

use tonic::Code;

use super::entities_program::{
    CHOSEN, PARSED, action, add, by_kind, default_of, find, id, probe, send_one, start,
};
use super::errors::refusal;
use super::messages::{delete, insert, lpm, modify, of, range, table, ternary};
use super::rig::entities;
use wormcast_switch_p4runtime::proto::p4::config::v1::action_ref::Scope;
use wormcast_switch_p4runtime::proto::p4::config::v1::match_field::{Match, MatchType};
use wormcast_switch_p4runtime::proto::p4::config::v1::p4_new_type_spec::Representation;
use wormcast_switch_p4runtime::proto::p4::config::v1::p4_new_type_translation::SdnType;
use wormcast_switch_p4runtime::proto::p4::config::v1::{
    ActionRef, P4NamedType, P4NewTypeSpec, P4NewTypeTranslation,
};
use wormcast_switch_p4runtime::proto::p4::v1::set_forwarding_pipeline_config_request::Action;
use wormcast_switch_p4runtime::proto::p4::v1::{CounterData, ExternEntry, TableEntry, entity};

fn fixed(priority: i32) -> TableEntry {
    TableEntry {
        table_id: id("ingress.fixed"),
        r#match: vec![ternary(1, &[0x10], &[0xf0])],
        priority,
        ..TableEntry::default()
    }
}

#[tokio::test]
async fn of_constant_entries_only_resources_can_be_modified() {
    let (rig, mut controller) = start().await;
    let all = TableEntry {
        table_id: id("ingress.fixed"),
        ..TableEntry::default()
    };
    let entries = find(&mut controller, all).await;
    let marked = entries
        .iter()
        .find(|entry| entry.r#match == fixed(1).r#match);
    let priority = marked.unwrap().priority;
    let counted = TableEntry {
        counter_data: Some(CounterData {
            packet_count: 5,
            byte_count: 0,
        }),
        ..fixed(priority)
    };
    controller
        .write(vec![modify(table(counted.clone()))])
        .await
        .unwrap();
    assert_eq!(send_one(&rig, &probe(0x11, 0, 0)).await[PARSED], 0xff);
    let ask = TableEntry {
        counter_data: Some(CounterData::default()),
        ..fixed(priority)
    };
    let found = find(&mut controller, ask).await;
    assert_eq!(found[0].counter_data.unwrap().packet_count, 6);
    let fixed_entries = "table `ingress.fixed`: its entries are constant; only their counters \
                         and meters can be modified, without an action";
    let with_action = TableEntry {
        action: action("ingress.mark", &[]),
        ..fixed(priority)
    };
    let cases = [
        (modify(table(with_action.clone())), fixed_entries),
        (insert(table(with_action)), fixed_entries),
        (
            delete(table(fixed(priority))),
            "fixed by the program: the entries of table ingress.fixed",
        ),
        (
            modify(table(default_of("ingress.ports"))),
            "fixed by the program: the default action of table ingress.ports",
        ),
    ];
    for (update, message) in cases {
        let refused = refusal(&mut controller, update).await;
        assert_eq!(refused, (Code::PermissionDenied, message.to_owned()));
    }
}

/// Without the action a controller would read entries that it cannot write.
#[tokio::test]
async fn a_p4info_names_the_actions_of_entries_that_are_there_at_the_start() {
    let (_rig, mut controller) = start().await;
    let choose = id("ingress.choose");
    let changes: [fn(&mut ActionRef) -> bool; 2] = [
        |_| false,
        |reference| {
            reference.scope = Scope::DefaultOnly as i32;
            true
        },
    ];
    for change in changes {
        let mut config = entities();
        for found in &mut config.p4info.as_mut().unwrap().tables {
            if found.preamble.as_ref().unwrap().name == "ingress.initial" {
                let keeps = |one: &mut ActionRef| one.id != choose || change(one);
                found.action_refs.retain_mut(keeps);
            }
        }
        let set = controller.set_config(Action::VerifyAndCommit, config).await;
        let status = set.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument);
        assert_eq!(
            status.message(),
            "the P4Info does not fit the program: entries that the program gives table \
             `ingress.initial` have the action `ingress.choose`, which is not among its actions \
             for entries"
        );
    }
}

/// p4c makes all match fields ternary of a table that has one such field, so a P4Info may
/// say of a ternary field that it is not; what the program's entries match it must be able
/// to say.
#[tokio::test]
async fn a_p4info_can_say_what_the_entries_match_that_are_there_at_the_start() {
    let (_rig, mut controller) = start().await;
    for (kind, cannot_say) in [
        (MatchType::Lpm, Some("0xf &&& 0xf")),
        (MatchType::Optional, Some("0x10 &&& 0xf0")),
        (MatchType::Ternary, None),
    ] {
        let mut config = entities();
        for found in &mut config.p4info.as_mut().unwrap().tables {
            if found.preamble.as_ref().unwrap().name == "ingress.fixed" {
                found.match_fields[0].r#match = Some(Match::MatchType(kind as i32));
            }
        }
        let set = controller.set_config(Action::VerifyAndCommit, config).await;
        let message = cannot_say.map(|entry| {
            let kind = kind.as_str_name().to_lowercase();
            format!(
                "the P4Info does not fit the program: entries that the program gives table \
                 `ingress.fixed` match field `kind` by {entry}, which a match of kind {kind} \
                 cannot say"
            )
        });
        assert_eq!(set.err().map(|status| status.message().to_owned()), message);
    }
}

/// Of translated values one is matched or all (§"Translation of Match Fields").
#[tokio::test]
async fn a_p4info_cannot_translate_what_entries_match_by_masks() {
    let (_rig, mut controller) = start().await;
    let mut config = entities();
    let p4info = config.p4info.as_mut().unwrap();
    let translation = P4NewTypeTranslation {
        uri: "kinds".to_owned(),
        sdn_type: Some(SdnType::SdnBitwidth(16)),
    };
    let kinds = P4NewTypeSpec {
        representation: Some(Representation::TranslatedType(translation)),
        ..P4NewTypeSpec::default()
    };
    let types = p4info.type_info.get_or_insert_default();
    types.new_types.insert("Kind_t".to_owned(), kinds);
    for found in &mut p4info.tables {
        if found.preamble.as_ref().unwrap().name == "ingress.fixed" {
            found.match_fields[0].bitwidth = 16;
            found.match_fields[0].type_name = Some(P4NamedType {
                name: "Kind_t".to_owned(),
            });
        }
    }
    let set = controller.set_config(Action::VerifyAndCommit, config).await;
    assert_eq!(
        set.unwrap_err().message(),
        "the P4Info does not fit the program: entries that the program gives table \
         `ingress.fixed` match field `kind` by 0x10 &&& 0xf0, which a match of kind ternary on \
         translated values cannot say"
    );
}

#[tokio::test]
async fn a_p4info_cannot_keep_the_default_action_for_entries() {
    let (_rig, mut controller) = start().await;
    let mut config = entities();
    for found in &mut config.p4info.as_mut().unwrap().tables {
        if found.preamble.as_ref().unwrap().name == "ingress.initial" {
            let none = id("NoAction");
            let mut references = found.action_refs.iter_mut();
            let default = references.find(|reference| reference.id == none);
            default.unwrap().scope = Scope::TableOnly as i32;
        }
    }
    let set = controller.set_config(Action::VerifyAndCommit, config).await;
    let status = set.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    assert_eq!(
        status.message(),
        "the P4Info does not fit the program: the program gives table `ingress.initial` the \
         default action `NoAction`, which is for entries only"
    );
}

#[tokio::test]
async fn entries_that_are_there_at_the_start_can_be_changed() {
    let (rig, mut controller) = start().await;
    let all = TableEntry {
        table_id: id("ingress.initial"),
        ..TableEntry::default()
    };
    let choose = |value: u8| action("ingress.choose", &[&[value]]);
    let initial = [
        by_kind("ingress.initial", 0x21, choose(33)),
        by_kind("ingress.initial", 0x22, choose(34)),
    ];
    assert_eq!(find(&mut controller, all.clone()).await, initial);
    assert_eq!(send_one(&rig, &probe(0x21, 0, 0)).await[CHOSEN], 33);
    let updates = vec![
        modify(table(by_kind("ingress.initial", 0x21, choose(40)))),
        delete(table(initial[1].clone())),
    ];
    controller.write(updates).await.unwrap();
    assert_eq!(send_one(&rig, &probe(0x21, 0, 0)).await[CHOSEN], 40);
    // It holds as many as the P4Info says, not as many as it starts with.
    for kind in 1..16 {
        add(&mut controller, by_kind("ingress.initial", kind, choose(1))).await;
    }
    let full = insert(table(by_kind("ingress.initial", 16, choose(1))));
    assert_eq!(
        refusal(&mut controller, full).await,
        (
            Code::ResourceExhausted,
            "table ingress.initial is full: it holds at most 16".to_owned()
        )
    );
    assert_eq!(find(&mut controller, all).await.len(), 16);
}

#[tokio::test]
async fn an_entry_is_only_its_key_when_it_is_deleted() {
    let (_rig, mut controller) = start().await;
    let entry = by_kind("ingress.initial", 0x55, action("ingress.choose", &[&[1]]));
    add(&mut controller, entry.clone()).await;
    let nonsense = TableEntry {
        action: action("ingress.mirror", &[]),
        counter_data: Some(CounterData::default()),
        time_since_last_hit: Some(Default::default()),
        ..entry.clone()
    };
    controller
        .write(vec![delete(table(nonsense))])
        .await
        .unwrap();
    let constant = TableEntry {
        is_const: true,
        ..entry
    };
    assert_eq!(
        refusal(&mut controller, delete(table(constant))).await,
        (
            Code::InvalidArgument,
            "table `ingress.initial`: is_const cannot be written".to_owned()
        )
    );
}

/// A prefix of no bits and the whole range match anything: their fields are left out
/// (§"Match Format"), so that what is read can be written.
#[tokio::test]
async fn entries_of_the_program_that_match_anything_are_read_without_the_field() {
    let (_rig, mut controller) = start().await;
    let others = [
        ("ingress.prefixes", lpm(1, &[0x40], 4)),
        ("ingress.bands", range(1, &[0x40], &[0x4f])),
    ];
    for (name, other) in others {
        let all = TableEntry {
            table_id: id(name),
            ..TableEntry::default()
        };
        let entries = find(&mut controller, all).await;
        let mut keys: Vec<_> = entries.iter().map(|entry| entry.r#match.clone()).collect();
        keys.sort_by_key(Vec::len);
        assert_eq!(keys, [vec![], vec![other]], "{name}");
        for entry in entries {
            controller
                .write(vec![delete(table(entry.clone()))])
                .await
                .unwrap();
            controller.write(vec![insert(table(entry))]).await.unwrap();
        }
    }
}

#[tokio::test]
async fn filters_for_all_tables_cannot_name_fields_or_actions() {
    let (_rig, mut controller) = start().await;
    let filter = TableEntry {
        action: action("ingress.choose", &[]),
        ..TableEntry::default()
    };
    let status = controller.read(vec![table(filter)]).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    assert_eq!(
        status.message(),
        "a read of all tables cannot have a match or an action; name a table"
    );
    let resources = TableEntry {
        counter_data: Some(CounterData::default()),
        ..TableEntry::default()
    };
    let found = find(&mut controller, resources).await;
    let counted = found.iter().filter(|entry| entry.counter_data.is_some());
    assert_eq!((found.len(), counted.count()), (8, 2));
}

#[tokio::test]
async fn externs_are_not_known() {
    let (_rig, mut controller) = start().await;
    let entry = of(entity::Entity::ExternEntry(ExternEntry {
        extern_type_id: 0x81,
        ..ExternEntry::default()
    }));
    assert_eq!(
        refusal(&mut controller, insert(entry.clone())).await,
        (
            Code::Unimplemented,
            "extern type 129 is not known: v1model has no externs with entries of their own"
                .to_owned()
        )
    );
    let status = controller.read(vec![entry]).await.unwrap_err();
    assert_eq!(status.code(), Code::Unimplemented);
}
