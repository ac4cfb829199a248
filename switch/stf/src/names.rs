//! Finds what scripts name: by the whole name, or by an end that only one has.

use wormcast_switch_program::{
    ActionId, ActionProfileId, CounterId, DigestId, MeterId, Program, RegisterId, TableId,
};

/// Takes out of `added` what has a name; all of it without one.
pub(super) fn take_named<T>(
    added: &mut Vec<T>,
    name: &Option<String>,
    name_of: impl Fn(&T) -> &Option<String>,
) -> Result<Vec<T>, String> {
    let is_meant = |one: &T| name.is_none() || name_of(one) == name;
    let (taken, kept) = std::mem::take(added).into_iter().partition(is_meant);
    *added = kept;
    match (name, &taken) {
        (Some(name), taken) if Vec::<T>::is_empty(taken) => {
            Err(format!("there is no entry `{name}`"))
        }
        _ => Ok(taken),
    }
}

/// The position of the one name that is, or ends in, what is wanted.
fn find<'n>(
    kind: &str,
    wanted: &str,
    names: impl Iterator<Item = &'n str>,
) -> Result<usize, String> {
    let names: Vec<&str> = names.collect();
    if let Some(index) = names.iter().position(|name| *name == wanted) {
        return Ok(index);
    }
    let ends = |name: &&str| name.ends_with(wanted);
    let ending: Vec<&str> = names.iter().copied().filter(ends).collect();
    // Of names that end so, one whose last part is what is wanted goes first.
    let whole = |name: &&str| {
        let stem = name.strip_suffix(wanted);
        stem.is_some_and(|stem| stem.is_empty() || stem.ends_with('.'))
    };
    let whole: Vec<&str> = ending.iter().copied().filter(whole).collect();
    match (whole.as_slice(), ending.as_slice()) {
        ([only], _) | ([], [only]) => Ok(names.iter().position(|name| name == only).unwrap_or(0)),
        ([], []) => Err(format!(
            "there is no {kind} `{wanted}`; there are {}",
            names.join(", ")
        )),
        _ => Err(format!("{kind} `{wanted}` may be {}", ending.join(" or "))),
    }
}

pub(super) fn table(program: &Program, name: &str) -> Result<TableId, String> {
    let names = program.tables().iter().map(|table| table.name.as_str());
    find("table", name, names).map(TableId::from_index)
}

pub(super) fn counter(program: &Program, name: &str) -> Result<CounterId, String> {
    let names = program
        .counters()
        .iter()
        .map(|counter| counter.name.as_str());
    find("counter", name, names).map(CounterId::from_index)
}

pub(super) fn register(program: &Program, name: &str) -> Result<RegisterId, String> {
    let names = program
        .registers()
        .iter()
        .map(|register| register.name.as_str());
    find("register", name, names).map(RegisterId::from_index)
}

pub(super) fn meter(program: &Program, name: &str) -> Result<MeterId, String> {
    let names = program.meters().iter().map(|meter| meter.name.as_str());
    find("meter", name, names).map(MeterId::from_index)
}

pub(super) fn digest(program: &Program, name: &str) -> Result<DigestId, String> {
    let names = program.digests().iter().map(|digest| digest.name.as_str());
    find("digest", name, names).map(DigestId::from_index)
}

pub(super) fn profile(program: &Program, name: &str) -> Result<ActionProfileId, String> {
    let profiles = program.action_profiles().iter();
    let names = profiles.map(|profile| profile.name.as_str());
    find("action profile", name, names).map(ActionProfileId::from_index)
}

/// An action among some: several actions of a program can have one name.
pub(super) fn action(
    program: &Program,
    among: &[ActionId],
    name: &str,
) -> Result<ActionId, String> {
    let names = || {
        let actions = among.iter();
        actions.map(|action| program.actions()[action.index()].name.as_str())
    };
    if let Some(index) = names().position(|candidate| candidate.ends_with(name))
        && !names().any(|candidate| candidate == name)
    {
        return Ok(among[index]);
    }
    find("action", name, names()).map(|index| among[index])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_names_go_before_ends() {
        let names = ["ingress.t", "egress.t", "a.bt", "x.y"];
        let find = |wanted| find("table", wanted, names.into_iter());
        assert_eq!(find("egress.t"), Ok(1));
        assert_eq!(find("y"), Ok(3));
        assert_eq!(find("bt"), Ok(2));
        assert_eq!(
            find("t").unwrap_err(),
            "table `t` may be ingress.t or egress.t or a.bt"
        );
        let error = find("z").unwrap_err();
        assert_eq!(
            error,
            "there is no table `z`; there are ingress.t, egress.t, a.bt, x.y"
        );
    }
}
