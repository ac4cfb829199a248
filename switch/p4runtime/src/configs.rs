//! Configs that were found good, so that switches with the same one share it.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::device_config;
use super::proto::p4::v1::ForwardingPipelineConfig;
use super::rejection::Rejection;
use super::schema::Schema;
use super::translation::TranslationTables;
use wormcast_switch_pipeline::LoadedProgram;

/// Different configs that are remembered while some switch has them; more are not shared.
const CONFIGS_MAX: usize = 16;

/// A config, its program, and its P4Info bound to that.
pub struct Checked {
    /// As the controller gave it.
    pub config: ForwardingPipelineConfig,
    /// Its P4Info, bound to its program.
    pub schema: Schema,
    pub program: Arc<LoadedProgram>,
}

impl Checked {
    fn new(
        config: ForwardingPipelineConfig,
        translations: &TranslationTables,
    ) -> Result<Self, Rejection> {
        let p4info = config
            .p4info
            .as_ref()
            .ok_or_else(|| Rejection::invalid("the config has no P4Info"))?;
        let json = device_config::json_of(&config.p4_device_config)?;
        let program = LoadedProgram::from_json(&json)
            .map_err(|error| Rejection::invalid(format!("p4_device_config: {error}")))?;
        let schema = Schema::bind_translated(p4info, &program, translations)
            .map_err(|error| Rejection::invalid(error.to_string()))?;
        Ok(Self {
            schema,
            program: Arc::new(program),
            config,
        })
    }
}

/// The configs of all switches of this process.
#[derive(Default)]
pub struct Configs {
    known: Mutex<Vec<Weak<Checked>>>,
}

impl Configs {
    /// Reads the program and binds the P4Info to it, unless some switch has the very same
    /// config. One whose translated types stand for what a file says is not shared.
    pub fn check(
        &self,
        config: ForwardingPipelineConfig,
        translations: &TranslationTables,
    ) -> Result<Arc<Checked>, Rejection> {
        if *translations != TranslationTables::default() {
            return Checked::new(config, translations).map(Arc::new);
        }
        // Held meanwhile: whoever else sets the same config waits and shares it.
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|checked| checked.strong_count() > 0);
        let same = |checked: &Arc<Checked>| checked.config == config;
        if let Some(checked) = known.iter().filter_map(Weak::upgrade).find(same) {
            return Ok(checked);
        }
        let checked = Arc::new(Checked::new(config, translations)?);
        if known.len() < CONFIGS_MAX {
            known.push(Arc::downgrade(&checked));
        }
        Ok(checked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::p4::v1::forwarding_pipeline_config::Cookie;
    use prost::Message;

    fn objects(cookie: u64) -> ForwardingPipelineConfig {
        let p4info = include_bytes!("../../tests/programs/objects.p4info.bin");
        ForwardingPipelineConfig {
            p4info: Some(Message::decode(p4info.as_slice()).unwrap()),
            p4_device_config: include_bytes!("../../tests/programs/objects.json").to_vec(),
            cookie: Some(Cookie { cookie }),
        }
    }

    #[test]
    fn only_the_same_config_is_shared_and_only_while_it_is_used() {
        let configs = Configs::default();
        let none = TranslationTables::default();
        let first = configs.check(objects(1), &none).ok().unwrap();
        let second = configs.check(objects(1), &none).ok().unwrap();
        assert!(Arc::ptr_eq(&first, &second));
        let other = configs.check(objects(2), &none).ok().unwrap();
        assert!(!Arc::ptr_eq(&first, &other));
        drop((first, second, other));
        assert!(
            configs
                .check(ForwardingPipelineConfig::default(), &none)
                .is_err()
        );
        assert!(configs.known.lock().unwrap().is_empty());
    }
}
