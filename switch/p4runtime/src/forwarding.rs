//! The forwarding-pipeline config: what a controller sets, and what follows from it.

use std::ops::{Deref, Range};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use super::batch::{Atomicity, Batch, Results};
use super::configs::{Checked, Configs};
use super::cookies::Cookies;
use super::digests::Digests;
use super::proto::p4::v1::{
    ActionProfileGroup, ActionProfileMember, CloneSessionEntry, CounterData, CounterEntry,
    DigestEntry, Entity, ForwardingPipelineConfig, MeterConfig, MeterEntry, MulticastGroupEntry,
    PacketReplicationEngineEntry, RegisterEntry, TableEntry, Update, ValueSetEntry, entity,
    packet_replication_engine_entry as pre, update,
};
use super::read;
use super::rejection::Rejection;
use super::source::Source;
use super::target::Target;
use super::translation::TranslationTables;
use wormcast_switch_dataplane::DataplaneHandle;
use wormcast_switch_pipeline::{Pipeline, PipelineConfig};

/// Updates of a `Write` that are applied before packets have their turn again, unless it is
/// all or none.
const UPDATES_A_TURN: usize = 128;

/// A config that was found good, with what one switch adds to it.
pub struct Verified {
    pub(super) checked: Arc<Checked>,
    pub(super) cookies: Mutex<Cookies>,
    pub(super) digests: Mutex<Digests>,
    /// It was said that a packet-out left something out.
    pub(super) warned_left_out: AtomicBool,
}

impl Deref for Verified {
    type Target = Checked;

    fn deref(&self) -> &Checked {
        &self.checked
    }
}

impl Verified {
    fn new(checked: Arc<Checked>) -> Self {
        Self {
            checked,
            cookies: Mutex::new(Cookies::default()),
            digests: Mutex::new(Digests::default()),
            warned_left_out: AtomicBool::new(false),
        }
    }

    /// A pipeline with empty tables.
    pub fn pipeline(&self, settings: PipelineConfig) -> Pipeline {
        let mut pipeline = Pipeline::new(Arc::clone(&self.program), settings);
        for table in self.schema.tables().filter(|table| !table.const_entries) {
            pipeline.open_table(table.table, table.size);
        }
        pipeline
    }

    /// Whether entries of some table can have an idle timeout.
    pub fn has_ages(&self) -> bool {
        self.schema.tables().any(|table| table.has_idle_timeout)
    }

    /// Whether the pipeline runs this config's program.
    pub fn runs_in(&self, pipeline: &Pipeline) -> bool {
        Arc::ptr_eq(&self.program, pipeline.program())
    }

    fn apply(&self, pipeline: &mut Pipeline, batch: &Batch, part: Range<usize>) -> Results {
        let mut target = Target {
            schema: &self.schema,
            pipeline,
            cookies: &mut self.cookies(),
            digests: &mut self.digests(),
        };
        batch.apply(&mut target, part)
    }

    fn find(&self, pipeline: &mut Pipeline, filter: &Entity) -> Result<Vec<Entity>, Rejection> {
        let mut source = Source {
            schema: &self.schema,
            pipeline,
            cookies: &self.cookies(),
            digests: &self.digests(),
        };
        read::find(&mut source, filter)
    }
}

/// The config that runs, and one that waits for its COMMIT.
pub struct Forwarding {
    dataplane: DataplaneHandle,
    settings: PipelineConfig,
    configs: Arc<Configs>,
    translations: Arc<TranslationTables>,
    running: Option<Arc<Verified>>,
    saved: Option<(Arc<Verified>, Pipeline)>,
}

impl Forwarding {
    pub fn new(
        dataplane: DataplaneHandle,
        settings: PipelineConfig,
        configs: Arc<Configs>,
    ) -> Self {
        Self {
            dataplane,
            settings,
            configs,
            translations: Arc::default(),
            running: None,
            saved: None,
        }
    }

    /// What translated types of the configs that are set from now on stand for.
    pub fn translate_with(&mut self, translations: Arc<TranslationTables>) {
        self.translations = translations;
    }

    fn check(&self, config: ForwardingPipelineConfig) -> Result<Verified, Rejection> {
        let checked = self.configs.check(config, &self.translations)?;
        Ok(Verified::new(checked))
    }

    /// What reads and writes refer to: the saved config, else the one that runs.
    pub fn current(&self) -> Option<&Arc<Verified>> {
        self.saved
            .as_ref()
            .map(|(verified, _)| verified)
            .or(self.running.as_ref())
    }

    pub fn running(&self) -> Option<&Arc<Verified>> {
        self.running.as_ref()
    }

    /// VERIFY: changes nothing.
    pub fn verify(&self, config: ForwardingPipelineConfig) -> Result<(), Rejection> {
        self.check(config).map(|_| ())
    }

    /// VERIFY_AND_SAVE: reads and writes refer to it from now on, packets do not.
    pub fn save(&mut self, config: ForwardingPipelineConfig) -> Result<(), Rejection> {
        let verified = Arc::new(self.check(config)?);
        let pipeline = verified.pipeline(self.settings);
        self.saved = Some((verified, pipeline));
        Ok(())
    }

    /// COMMIT: the saved config runs, with what was written since.
    pub async fn commit(&mut self) -> Result<(), Rejection> {
        let Some((verified, pipeline)) = self.saved.take() else {
            return Err(Rejection::not_found(
                "there is no saved config; VERIFY_AND_SAVE one first",
            ));
        };
        self.install(verified, pipeline).await
    }

    /// VERIFY_AND_COMMIT: the config runs, with empty tables.
    pub async fn replace(&mut self, config: ForwardingPipelineConfig) -> Result<(), Rejection> {
        let verified = Arc::new(self.check(config)?);
        let pipeline = verified.pipeline(self.settings);
        self.saved = None;
        self.install(verified, pipeline).await
    }

    async fn install(
        &mut self,
        verified: Arc<Verified>,
        pipeline: Pipeline,
    ) -> Result<(), Rejection> {
        self.dataplane
            .run(move |switch| switch.install(pipeline))
            .await?;
        self.running = Some(verified);
        Ok(())
    }

    /// RECONCILE_AND_COMMIT: the config runs, with all that the tables, groups, sessions,
    /// counters and registers hold now. No packet sees a state in between.
    pub async fn reconcile(&mut self, config: ForwardingPipelineConfig) -> Result<(), Rejection> {
        let Some(old) = self.running.clone() else {
            return self.replace(config).await;
        };
        let new = Arc::new(self.check(config)?);
        let mut pipeline = new.pipeline(self.settings);
        let replayed = Arc::clone(&new);
        self.dataplane
            .run(move |switch| {
                let running = of(switch.pipeline(), &old)?;
                pipeline.advance(running.now_us());
                let mut updates = Vec::new();
                for filter in everything() {
                    for entity in old.find(running, &filter)? {
                        updates.extend(replay(entity));
                    }
                }
                let all = 0..updates.len();
                let batch = Batch::unlimited(updates);
                for result in replayed.apply(&mut pipeline, &batch, all) {
                    result.map_err(|rejection| {
                        Rejection::invalid(rejection.message)
                            .within("the present state cannot be kept")
                    })?;
                }
                switch.install(pipeline);
                Ok::<_, Rejection>(())
            })
            .await??;
        self.saved = None;
        self.running = Some(new);
        Ok(())
    }

    /// Applies the updates in order; gives what became of each.
    pub async fn write(&mut self, batch: Batch) -> Result<Results, Rejection> {
        let count = batch.updates.len();
        if let Some((verified, pipeline)) = &mut self.saved {
            return Ok(verified.apply(pipeline, &batch, 0..count));
        }
        let verified = self.running.clone().ok_or_else(no_config)?;
        let turn = match batch.atomicity {
            Atomicity::ContinueOnError => UPDATES_A_TURN,
            Atomicity::AllOrNone => count.max(1),
        };
        let batch = Arc::new(batch);
        let mut results = Vec::with_capacity(count);
        for first in (0..count).step_by(turn) {
            let (batch, verified) = (Arc::clone(&batch), Arc::clone(&verified));
            let done = self.dataplane.run(move |switch| {
                let pipeline = of(switch.pipeline(), &verified)?;
                let part = first..count.min(first + turn);
                Ok::<_, Rejection>(verified.apply(pipeline, &batch, part))
            });
            results.extend(done.await??);
        }
        Ok(results)
    }

    /// Everything that the filters match.
    pub async fn read(&mut self, filters: Vec<Entity>) -> Result<Vec<Entity>, Rejection> {
        let mut found = Vec::new();
        for filter in filters {
            if let Some((verified, pipeline)) = &mut self.saved {
                found.extend(verified.find(pipeline, &filter)?);
                continue;
            }
            let verified = self.running.clone().ok_or_else(no_config)?;
            let turn = self.dataplane.run(move |switch| {
                let pipeline = of(switch.pipeline(), &verified)?;
                verified.find(pipeline, &filter)
            });
            found.extend(turn.await??);
        }
        Ok(found)
    }
}

/// The pipeline, if it runs the program of a config: another interface may have put another
/// program in its place.
fn of<'a>(
    pipeline: Option<&'a mut Pipeline>,
    verified: &Verified,
) -> Result<&'a mut Pipeline, Rejection> {
    pipeline
        .filter(|pipeline| verified.runs_in(pipeline))
        .ok_or_else(no_config)
}

/// The rejection of whatever needs a config before there is one.
pub fn no_config() -> Rejection {
    Rejection::new(
        tonic::Code::FailedPrecondition,
        "no forwarding pipeline config is set; use SetForwardingPipelineConfig first",
    )
}

/// Filters that together match all state.
fn everything() -> Vec<Entity> {
    let of = |entity| Entity {
        entity: Some(entity),
    };
    let replication = |kind| {
        let entry = PacketReplicationEngineEntry { r#type: Some(kind) };
        of(entity::Entity::PacketReplicationEngineEntry(entry))
    };
    let entries = TableEntry {
        counter_data: Some(CounterData::default()),
        meter_config: Some(MeterConfig::default()),
        ..TableEntry::default()
    };
    let defaults = TableEntry {
        is_default_action: true,
        ..entries.clone()
    };
    vec![
        replication(pre::Type::MulticastGroupEntry(
            MulticastGroupEntry::default(),
        )),
        replication(pre::Type::CloneSessionEntry(CloneSessionEntry::default())),
        of(entity::Entity::ActionProfileMember(
            ActionProfileMember::default(),
        )),
        of(entity::Entity::ActionProfileGroup(
            ActionProfileGroup::default(),
        )),
        of(entity::Entity::TableEntry(entries)),
        of(entity::Entity::TableEntry(defaults)),
        of(entity::Entity::ValueSetEntry(ValueSetEntry::default())),
        of(entity::Entity::CounterEntry(CounterEntry::default())),
        of(entity::Entity::RegisterEntry(RegisterEntry::default())),
        of(entity::Entity::MeterEntry(MeterEntry::default())),
        of(entity::Entity::DigestEntry(DigestEntry::default())),
    ]
}

/// The update that brings an entity back; `None` for what the program brings itself.
fn replay(entity: Entity) -> Option<Update> {
    let kind = match entity.entity.as_ref()? {
        entity::Entity::TableEntry(entry) if entry.is_const => return None,
        entity::Entity::TableEntry(entry) if entry.is_default_action => update::Type::Modify,
        entity::Entity::TableEntry(_)
        | entity::Entity::ActionProfileMember(_)
        | entity::Entity::ActionProfileGroup(_)
        | entity::Entity::DigestEntry(_)
        | entity::Entity::PacketReplicationEngineEntry(_) => update::Type::Insert,
        _ => update::Type::Modify,
    };
    Some(Update {
        r#type: kind as i32,
        entity: Some(entity),
    })
}
