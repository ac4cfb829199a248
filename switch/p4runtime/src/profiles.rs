//! Members and groups of action profiles, and sets of actions that entries bring.

use super::calls::{ActionUse, parse_call, write_call};
use super::cookies::{Cookie, CookieKey};
use super::fit::Object;
use super::kind::Kind;
use super::proto::p4::v1::{
    ActionProfileAction, ActionProfileActionSet, ActionProfileGroup, ActionProfileMember, Entity,
    TableAction, action_profile_action, action_profile_action_set as set_message,
    action_profile_group::{Member, member},
    entity, table_action,
};
use super::rejection::Rejection;
use super::replication::{parse_port, parse_port_number, write_port, write_port_number};
use super::schema::{ProfileSchema, Schema};
use super::source::{Source, of};
use super::target::Target;
use tonic::Code;
use wormcast_switch_pipeline::{
    ActionSet, GroupMember, PortId, SelectionMode, SizeSemantics, WeightedCall,
};

/// Most members of a group or actions of a set.
const GROUP_MEMBERS_MAX: usize = 65_536;

fn find_profile(schema: &Schema, id: u32) -> Result<&ProfileSchema, Rejection> {
    schema
        .profile(id)
        .ok_or_else(|| schema.absent.rejection(Object::Profile, id))
}

fn check_id(what: &str, id: u32) -> Result<(), Rejection> {
    if id != 0 {
        return Ok(());
    }
    Err(Rejection::invalid(format!(
        "{what} 0 is not valid: 0 stands for all of them in a read"
    )))
}

pub fn write_member(
    target: &mut Target<'_>,
    kind: Kind,
    member: &ActionProfileMember,
) -> Result<(), Rejection> {
    let schema = target.schema;
    let profile = find_profile(schema, member.action_profile_id)?;
    let what = format!("action profile `{}`", profile.name);
    let (place, id) = (profile.profile, member.member_id);
    check_id("member", id).map_err(|rejection| rejection.within(&what))?;
    if kind == Kind::Delete {
        return Ok(target.pipeline.delete_member(place, id)?);
    }
    let Some(action) = &member.action else {
        return Err(Rejection::invalid(format!(
            "{what}: member {id} has no action"
        )));
    };
    let call = parse_call(&what, &profile.actions, action, ActionUse::Entry)?;
    match kind {
        Kind::Insert => target.pipeline.insert_member(place, id, &call)?,
        Kind::Modify | Kind::Delete => target.pipeline.modify_member(place, id, &call)?,
    }
    Ok(())
}

pub fn write_group(
    target: &mut Target<'_>,
    kind: Kind,
    group: &ActionProfileGroup,
) -> Result<(), Rejection> {
    let schema = target.schema;
    let profile = find_profile(schema, group.action_profile_id)?;
    let (place, id) = (profile.profile, group.group_id);
    let what = format!("action profile `{}`: group {id}", profile.name);
    if !profile.has_selector {
        return Err(Rejection::invalid(format!(
            "{what}: the profile has no selector"
        )));
    }
    check_id("group", id).map_err(|rejection| rejection.within(&what))?;
    let key = CookieKey::ActionGroup(place, id);
    if kind == Kind::Delete {
        target.pipeline.delete_group(place, id)?;
        target.cookies.set(key, Cookie::default());
        return Ok(());
    }
    let (members, max_size) =
        parse_group(schema, profile, group).map_err(|rejection| rejection.within(&what))?;
    let pipeline = &mut target.pipeline;
    match kind {
        Kind::Insert => pipeline.insert_group(place, id, &members, max_size)?,
        Kind::Modify | Kind::Delete => pipeline.modify_group(place, id, &members, max_size)?,
    }
    let first = group.members.iter().find_map(|one| one.watch_kind.as_ref());
    let cookie = Cookie {
        ports_by_number: is_number(first),
        ..Cookie::default()
    };
    target.cookies.set(key, cookie);
    Ok(())
}

#[allow(deprecated, reason = "controllers still set it")]
fn is_number(watch: Option<&member::WatchKind>) -> bool {
    matches!(watch, Some(member::WatchKind::Watch(_)))
}

/// Whether an action names the ports it watches by the deprecated numbers.
#[allow(deprecated, reason = "controllers still set it")]
pub fn watches_by_number(action: Option<&TableAction>) -> bool {
    let Some(table_action::Type::ActionProfileActionSet(set)) =
        action.and_then(|action| action.r#type.as_ref())
    else {
        return false;
    };
    let mut watches = set.action_profile_actions.iter();
    let first = watches.find_map(|action| action.watch_kind.as_ref());
    matches!(first, Some(action_profile_action::WatchKind::Watch(_)))
}

fn parse_group(
    schema: &Schema,
    profile: &ProfileSchema,
    group: &ActionProfileGroup,
) -> Result<(Vec<GroupMember>, u32), Rejection> {
    let greatest = profile.group_size_max;
    let max_size = match u32::try_from(group.max_size) {
        Ok(size) if greatest == 0 || size <= greatest => size,
        _ => {
            let bound = if greatest == 0 {
                "at least 0".to_owned()
            } else {
                format!("0 to {greatest}, the max_group_size of the P4Info")
            };
            return Err(Rejection::invalid(format!(
                "max_size {} is not valid: {bound}",
                group.max_size
            )));
        }
    };
    let mut members = Vec::with_capacity(group.members.len());
    for member in &group.members {
        let within =
            |rejection: Rejection| rejection.within(format_args!("member {}", member.member_id));
        let one = GroupMember {
            member: member.member_id,
            weight: parse_weight(profile, profile.size_semantics, member.weight).map_err(within)?,
            watch_port: parse_watch(schema, member).map_err(within)?,
        };
        if members
            .iter()
            .any(|other: &GroupMember| other.member == one.member)
        {
            return Err(Rejection::invalid(format!(
                "member {} is there twice",
                one.member
            )));
        }
        members.push(one);
    }
    let weights = members.iter().map(|member| member.weight);
    let size = size_of(profile.size_semantics, weights);
    let limit = match (max_size, greatest) {
        (0, 0) => u64::MAX,
        (0, greatest) => u64::from(greatest),
        (max_size, _) => u64::from(max_size),
    };
    if size > limit || members.len() > GROUP_MEMBERS_MAX {
        return Err(Rejection::new(
            Code::ResourceExhausted,
            too_large(profile.size_semantics, size, limit),
        ));
    }
    Ok((members, max_size))
}

fn too_large(semantics: SizeSemantics, size: u64, limit: u64) -> String {
    match semantics {
        SizeSemantics::SumOfWeights if limit != u64::MAX => {
            format!("its weights add up to {size}, which is more than {limit}")
        }
        SizeSemantics::SumOfMembers if limit != u64::MAX => {
            format!("it has {size} members, which is more than {limit}")
        }
        _ => format!("it has more than {GROUP_MEMBERS_MAX} members"),
    }
}

fn size_of(semantics: SizeSemantics, weights: impl Iterator<Item = u32>) -> u64 {
    match semantics {
        SizeSemantics::SumOfWeights => weights.map(u64::from).sum(),
        SizeSemantics::SumOfMembers => weights.count() as u64,
    }
}

fn parse_weight(
    profile: &ProfileSchema,
    semantics: SizeSemantics,
    weight: i32,
) -> Result<u32, Rejection> {
    let refuse = |bound: String| {
        Err(Rejection::invalid(format!(
            "weight {weight} is not valid: {bound}"
        )))
    };
    if profile.weights_disallowed {
        return match weight {
            0 => Ok(1),
            _ => refuse("0, the action profile takes no weights".to_owned()),
        };
    }
    let greatest = match (semantics, profile.member_weight_max) {
        (SizeSemantics::SumOfWeights, _) | (SizeSemantics::SumOfMembers, 0) => u32::MAX,
        (SizeSemantics::SumOfMembers, greatest) => greatest,
    };
    match u32::try_from(weight) {
        Ok(weight) if (1..=greatest).contains(&weight) => Ok(weight),
        _ if greatest == u32::MAX => refuse("at least 1".to_owned()),
        _ => refuse(format!("1 to {greatest}")),
    }
}

fn write_weight(profile: &ProfileSchema, weight: u32) -> i32 {
    if profile.weights_disallowed {
        0
    } else {
        i32::try_from(weight).unwrap_or(i32::MAX)
    }
}

#[allow(deprecated, reason = "controllers still set it")]
fn parse_watch(schema: &Schema, given: &Member) -> Result<Option<PortId>, Rejection> {
    match &given.watch_kind {
        None => Ok(None),
        Some(member::WatchKind::Watch(port)) => watch_number(schema, *port).map(Some),
        Some(member::WatchKind::WatchPort(bytes)) => watch_bytes(schema, bytes),
    }
}

fn watch_number(schema: &Schema, port: i32) -> Result<PortId, Rejection> {
    let number = u32::try_from(port)
        .map_err(|_| Rejection::invalid(format!("{port} is not a port: 0 to {}", schema.port_max)));
    number
        .and_then(|number| parse_port_number(schema, number))
        .map_err(|rejection| rejection.within("watch"))
}

fn watch_bytes(schema: &Schema, bytes: &[u8]) -> Result<Option<PortId>, Rejection> {
    if bytes.is_empty() {
        return Ok(None);
    }
    parse_port(schema, bytes)
        .map(Some)
        .map_err(|rejection| rejection.within("watch_port"))
}

/// The actions an entry chooses among.
pub fn parse_set(
    schema: &Schema,
    profile: &ProfileSchema,
    message: &ActionProfileActionSet,
) -> Result<ActionSet, Rejection> {
    use set_message::{ActionSelectionMode as Mode, SizeSemantics as Size};
    let mode = match Mode::try_from(message.action_selection_mode) {
        Ok(Mode::DefaultModeDeterminedByActionSelector) => SelectionMode::Selector,
        Ok(Mode::Hash) => SelectionMode::Hash,
        Ok(Mode::Random) => SelectionMode::Random,
        Err(_) => {
            return Err(Rejection::invalid(format!(
                "action selection mode {} is not valid: \
                 DEFAULT_MODE_DETERMINED_BY_ACTION_SELECTOR, HASH or RANDOM",
                message.action_selection_mode
            )));
        }
    };
    let size_semantics = match Size::try_from(message.size_semantics) {
        Ok(Size::DefaultSizeDeterminedByActionSelector) => None,
        Ok(Size::SumOfWeights) => Some(SizeSemantics::SumOfWeights),
        Ok(Size::SumOfMembers) => Some(SizeSemantics::SumOfMembers),
        Err(_) => {
            return Err(Rejection::invalid(format!(
                "size semantics {} is not valid: DEFAULT_SIZE_DETERMINED_BY_ACTION_SELECTOR, \
                 SUM_OF_WEIGHTS or SUM_OF_MEMBERS",
                message.size_semantics
            )));
        }
    };
    let semantics = size_semantics.unwrap_or(profile.size_semantics);
    let mut actions = Vec::with_capacity(message.action_profile_actions.len());
    for (place, given) in message.action_profile_actions.iter().enumerate() {
        let what = format!("action {} of its set", place + 1);
        let within = |rejection: Rejection| rejection.within(&what);
        actions.push(parse_weighted(schema, profile, semantics, given).map_err(within)?);
    }
    let size = size_of(semantics, actions.iter().map(|action| action.weight));
    let limit = match profile.group_size_max {
        0 => u64::MAX,
        limit => u64::from(limit),
    };
    if size > limit || actions.len() > GROUP_MEMBERS_MAX {
        let message = too_large(semantics, size, limit);
        return Err(Rejection::invalid(message).within("its set of actions"));
    }
    Ok(ActionSet {
        actions,
        mode,
        size_semantics,
    })
}

#[allow(deprecated, reason = "controllers still set it")]
fn parse_weighted(
    schema: &Schema,
    profile: &ProfileSchema,
    semantics: SizeSemantics,
    given: &ActionProfileAction,
) -> Result<WeightedCall, Rejection> {
    use action_profile_action::WatchKind;
    let Some(action) = &given.action else {
        return Err(Rejection::invalid("its action is not set"));
    };
    let what = format!("action profile `{}`", profile.name);
    let watch_port = match &given.watch_kind {
        None => None,
        Some(WatchKind::Watch(port)) => Some(watch_number(schema, *port)?),
        Some(WatchKind::WatchPort(bytes)) => watch_bytes(schema, bytes)?,
    };
    Ok(WeightedCall {
        call: parse_call(&what, &profile.actions, action, ActionUse::Entry)?,
        weight: parse_weight(profile, semantics, given.weight)?,
        watch_port,
    })
}

/// The message for a set; `None` for an action that the P4Info does not have.
pub fn write_set(
    schema: &Schema,
    profile: &ProfileSchema,
    set: &ActionSet,
    by_number: bool,
) -> Option<ActionProfileActionSet> {
    use action_profile_action::WatchKind;
    use set_message::{ActionSelectionMode as Mode, SizeSemantics as Size};
    let mode = match set.mode {
        SelectionMode::Selector => Mode::DefaultModeDeterminedByActionSelector,
        SelectionMode::Hash => Mode::Hash,
        SelectionMode::Random => Mode::Random,
    };
    let size = match set.size_semantics {
        None => Size::DefaultSizeDeterminedByActionSelector,
        Some(SizeSemantics::SumOfWeights) => Size::SumOfWeights,
        Some(SizeSemantics::SumOfMembers) => Size::SumOfMembers,
    };
    let mut actions = Vec::with_capacity(set.actions.len());
    for action in &set.actions {
        #[allow(deprecated, reason = "given back as it was written")]
        let watch_kind = action.watch_port.map(|port| {
            if by_number {
                let number = write_port_number(schema, port);
                WatchKind::Watch(i32::try_from(number).unwrap_or(i32::MAX))
            } else {
                WatchKind::WatchPort(write_port(schema, port))
            }
        });
        actions.push(ActionProfileAction {
            action: Some(write_call(&profile.actions, &action.call)?),
            weight: write_weight(profile, action.weight),
            watch_kind,
        });
    }
    Some(ActionProfileActionSet {
        action_profile_actions: actions,
        action_selection_mode: mode as i32,
        size_semantics: size as i32,
    })
}

/// Members that a filter matches.
pub fn read_members(
    source: &Source<'_>,
    filter: &ActionProfileMember,
) -> Result<Vec<Entity>, Rejection> {
    let mut found = Vec::new();
    for profile in chosen(source.schema, filter.action_profile_id)? {
        for (id, call) in source.pipeline.members(profile.profile) {
            if filter.member_id == 0 || filter.member_id == id {
                found.push(of(entity::Entity::ActionProfileMember(
                    ActionProfileMember {
                        action_profile_id: profile.id,
                        member_id: id,
                        action: write_call(&profile.actions, call),
                    },
                )));
            }
        }
    }
    let one = filter.action_profile_id != 0 && filter.member_id != 0;
    existing("member", filter.member_id, one, found)
}

/// Groups that a filter matches.
pub fn read_groups(
    source: &Source<'_>,
    filter: &ActionProfileGroup,
) -> Result<Vec<Entity>, Rejection> {
    let mut found = Vec::new();
    for profile in chosen(source.schema, filter.action_profile_id)? {
        for (id, members, max_size) in source.pipeline.groups(profile.profile) {
            if filter.group_id != 0 && filter.group_id != id {
                continue;
            }
            let key = CookieKey::ActionGroup(profile.profile, id);
            let by_number = source.cookies.get(&key).ports_by_number;
            let members = members.iter().map(|one| Member {
                member_id: one.member,
                weight: write_weight(profile, one.weight),
                watch_kind: one
                    .watch_port
                    .map(|port| write_watch(source.schema, port, by_number)),
            });
            found.push(of(entity::Entity::ActionProfileGroup(ActionProfileGroup {
                action_profile_id: profile.id,
                group_id: id,
                members: members.collect(),
                max_size: i32::try_from(max_size).unwrap_or(i32::MAX),
            })));
        }
    }
    let one = filter.action_profile_id != 0 && filter.group_id != 0;
    existing("group", filter.group_id, one, found)
}

#[allow(deprecated, reason = "given back as it was written")]
fn write_watch(schema: &Schema, port: PortId, by_number: bool) -> member::WatchKind {
    if by_number {
        let number = write_port_number(schema, port);
        member::WatchKind::Watch(i32::try_from(number).unwrap_or(i32::MAX))
    } else {
        member::WatchKind::WatchPort(write_port(schema, port))
    }
}

fn existing(what: &str, id: u32, one: bool, found: Vec<Entity>) -> Result<Vec<Entity>, Rejection> {
    if one && found.is_empty() {
        return Err(Rejection::not_found(format!(
            "the action profile has no {what} {id}"
        )));
    }
    Ok(found)
}

fn chosen(schema: &Schema, id: u32) -> Result<Vec<&ProfileSchema>, Rejection> {
    match id {
        0 => Ok(schema.profiles().collect()),
        id if schema.absent.has(Object::Profile, id) => Ok(Vec::new()),
        id => Ok(vec![find_profile(schema, id)?]),
    }
}
