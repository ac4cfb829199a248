//! What a client subscribes to, checked.

use std::sync::Arc;
use std::time::Duration;

use crate::encoding::Encoding;
use crate::limits::{
    PATHS_MAX, SAMPLE_INTERVAL_DEFAULT, SAMPLE_INTERVAL_MAX, SAMPLE_INTERVAL_MIN, SCHEDULES_MAX,
};
use crate::notify::Style;
use crate::path::{Selection, resolve};
use crate::path_text::{shortened, text_of};
use crate::proto::gnmi::subscription_list::Mode as ListMode;
use crate::proto::gnmi::{
    ModelData, Path, Subscription as One, SubscriptionList, SubscriptionMode,
};
use crate::proto::gnmi_ext::{Extension, extension::Ext};
use crate::reading::Reading;
use crate::refusal::Refusal;
use crate::schedule::{Schedule, Timing, Trigger};
use crate::schema::{Kind, LeafSet, Model};
use crate::wanted::Wanted;

#[derive(Clone, Debug)]
pub(crate) struct Subscription {
    pub(crate) mode: Mode,
    pub(crate) style: Style,
    /// The client does not want what there is now.
    pub(crate) updates_only: bool,
    pub(crate) wanted: Wanted,
    timings: Vec<(Timing, Wanted)>,
}

/// How long a subscription goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Stream,
    Once,
    Poll,
}

impl Mode {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Stream => "STREAM",
            Self::Once => "ONCE",
            Self::Poll => "POLL",
        }
    }
}

impl Subscription {
    /// Reads the first message of a stream.
    pub(crate) fn read(list: &SubscriptionList) -> Result<Self, Refusal> {
        let mode = match ListMode::try_from(list.mode) {
            Ok(ListMode::Stream) => Mode::Stream,
            Ok(ListMode::Once) => Mode::Once,
            Ok(ListMode::Poll) => Mode::Poll,
            Err(_) => {
                return Err(Refusal::Enumeration {
                    field: "mode",
                    value: list.mode,
                    choices: "STREAM, ONCE or POLL",
                });
            }
        };
        let encoding = Encoding::read(list.encoding)?.of_leaves();
        let models = models(&list.use_models)?;
        match list.subscription.len() {
            0 => return Err(Refusal::NoPaths),
            count if count > PATHS_MAX => return Err(Refusal::ManyPaths { count }),
            _ => {}
        }
        let mut subscription = Self {
            mode,
            style: Style::new(encoding, list.prefix.as_ref()),
            updates_only: list.updates_only,
            wanted: Wanted::default(),
            timings: Vec::new(),
        };
        for one in &list.subscription {
            subscription.add(list.prefix.as_ref(), one, models)?;
        }
        match subscription.timings.len() {
            count if count > SCHEDULES_MAX => Err(Refusal::ManySchedules { count }),
            _ => Ok(subscription),
        }
    }

    /// When what is sent, from now on.
    pub(crate) fn schedules(&self, now: &Arc<Reading>) -> Vec<Schedule> {
        let timings = self.timings.iter();
        let schedules =
            timings.map(|(timing, wanted)| Schedule::new(*timing, wanted.clone(), Arc::clone(now)));
        schedules.collect()
    }

    fn add(&mut self, prefix: Option<&Path>, one: &One, models: LeafSet) -> Result<(), Refusal> {
        let path = one.path.clone().unwrap_or_default();
        let selection = resolve(prefix, &path)?;
        self.wanted.add(&selection, models);
        if self.mode != Mode::Stream {
            return Ok(()); // the other fields are for streams
        }
        let text = || text_of(prefix, Some(&path));
        let heartbeat = heartbeat(one, &text)?;
        let mut add = |trigger, leaves: LeafSet| {
            let timing = Timing { trigger, heartbeat };
            self.schedule(timing, &selection, leaves.and(models));
        };
        match SubscriptionMode::try_from(one.mode) {
            Ok(SubscriptionMode::OnChange) => {
                let leaves = LeafSet::of_kind(Kind::Event);
                if selection.leaves.and(leaves).is_empty() {
                    return Err(Refusal::OnChangeCounters { path: text() });
                }
                add(Trigger::Change, leaves);
            }
            Ok(SubscriptionMode::Sample) => {
                let trigger = Trigger::Sample {
                    interval: sample_interval(one, &text)?,
                    suppress_redundant: one.suppress_redundant,
                };
                add(trigger, LeafSet::all());
            }
            Ok(SubscriptionMode::TargetDefined) => {
                if one.sample_interval != 0 {
                    return Err(Refusal::TargetDefinedInterval { path: text() });
                }
                let trigger = Trigger::Sample {
                    interval: SAMPLE_INTERVAL_DEFAULT,
                    suppress_redundant: one.suppress_redundant,
                };
                add(Trigger::Change, LeafSet::of_kind(Kind::Event));
                add(trigger, LeafSet::of_kind(Kind::Counter));
            }
            Err(_) => {
                return Err(Refusal::Enumeration {
                    field: "mode of a path",
                    value: one.mode,
                    choices: "TARGET_DEFINED, ON_CHANGE or SAMPLE",
                });
            }
        }
        Ok(())
    }

    fn schedule(&mut self, timing: Timing, selection: &Selection, leaves: LeafSet) {
        if selection.leaves.and(leaves).is_empty() {
            return;
        }
        let mut known = self.timings.iter_mut();
        match known.find(|(other, _)| *other == timing) {
            Some((_, wanted)) => wanted.add(selection, leaves),
            None => {
                let mut wanted = Wanted::default();
                wanted.add(selection, leaves);
                self.timings.push((timing, wanted));
            }
        }
    }
}

fn sample_interval(one: &One, path: &dyn Fn() -> String) -> Result<Duration, Refusal> {
    let zero = "the shortest";
    let given = interval("sample_interval", one.sample_interval, zero, path)?;
    Ok(given.unwrap_or(SAMPLE_INTERVAL_MIN))
}

fn heartbeat(one: &One, path: &dyn Fn() -> String) -> Result<Option<Duration>, Refusal> {
    interval("heartbeat_interval", one.heartbeat_interval, "none", path)
}

/// An interval in nanoseconds; none for 0.
fn interval(
    field: &'static str,
    nanoseconds: u64,
    zero: &'static str,
    path: &dyn Fn() -> String,
) -> Result<Option<Duration>, Refusal> {
    let value = Duration::from_nanos(nanoseconds);
    if value.is_zero() {
        return Ok(None);
    }
    if (SAMPLE_INTERVAL_MIN..=SAMPLE_INTERVAL_MAX).contains(&value) {
        return Ok(Some(value));
    }
    Err(Refusal::Interval {
        field,
        value,
        path: path(),
        zero,
    })
}

/// Leaves of the models that a client wants to be used; of all, if it names none (§2.6).
pub(crate) fn models(used: &[ModelData]) -> Result<LeafSet, Refusal> {
    if used.is_empty() {
        return Ok(LeafSet::all());
    }
    for model in used {
        if !Model::ALL.iter().any(|known| known.name() == model.name) {
            return Err(Refusal::Model {
                name: shortened(&model.name),
                choices: Model::ALL.map(Model::name).join(" or "),
            });
        }
    }
    let is_used = |model: Model| used.iter().any(|used| used.name == model.name());
    Ok(LeafSet::of(|leaf| is_used(leaf.model())))
}

/// Refuses extensions that would change what a request means. Others do not concern one
/// that only reads.
pub(crate) fn check_extensions(extensions: &[Extension]) -> Result<(), Refusal> {
    for extension in extensions {
        match &extension.ext {
            Some(Ext::History(_)) => return Err(Refusal::Extension("History")),
            Some(Ext::Depth(_)) => return Err(Refusal::Extension("Depth")),
            Some(Ext::ConfigSubscription(_)) => {
                return Err(Refusal::Extension("ConfigSubscription"));
            }
            Some(Ext::RegisteredExt(_) | Ext::MasterArbitration(_) | Ext::Commit(_)) | None => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
