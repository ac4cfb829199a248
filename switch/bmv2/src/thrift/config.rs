//! Methods for the program and the switch as a whole.

use std::sync::Arc;

use md5::{Digest, Md5};

use super::arguments::{Arguments, integer};
use super::context::{Context, no_program};
use super::failure::{CrcError, Failure, LearnError, LookupError, Outcome, SwapError};
use super::multicast_nodes::Multicast;
use super::wire::Value;
use crate::notifications::Notifier;
use wormcast_switch_dataplane::Installed;
use wormcast_switch_pipeline::LoadedProgram;
use wormcast_switch_pipeline::{ControlError, CrcParameters, Pipeline};

/// `bm_get_config`: the JSON of the program.
pub fn config(context: &mut Context<'_>, _: &Arguments) -> Outcome {
    // BMv2 without a program answers with an empty configuration, which CLIs can read.
    let text = match context.switch.pipeline() {
        Some(pipeline) => Value::text(pipeline.program().text()),
        None => Value::text("{}"),
    };
    Ok(Some(text))
}

/// `bm_get_config_md5`.
pub fn config_md5(context: &mut Context<'_>, _: &Arguments) -> Outcome {
    let digest = match context.switch.pipeline() {
        Some(pipeline) => Md5::digest(pipeline.program().text()),
        None => Md5::digest("{}"),
    };
    Ok(Some(Value::Binary(digest.to_vec())))
}

/// `bm_mgmt_get_info`.
pub fn info(context: &mut Context<'_>, _: &Arguments) -> Outcome {
    let identity = &context.state.identity;
    // As in BMv2, no notifications have an empty address.
    let notifier = context.state.notifier.as_ref();
    let notifications = notifier.map_or_else(String::new, |notifier| notifier.address());
    let mut fields = vec![
        (1, Value::I64(identity.device_id as i64)),
        (2, Value::I32(i32::from(identity.thrift_port))),
        (3, Value::text(&notifications)),
    ];
    let sockets = [(4, &identity.event_log), (5, &identity.debugger)];
    for (number, socket) in sockets {
        if let Some(socket) = socket {
            fields.push((number, Value::text(socket)));
        }
    }
    Ok(Some(Value::Struct(fields)))
}

/// `bm_load_new_config`: the program waits for its swap.
pub fn load(context: &mut Context<'_>, call: &Arguments) -> Outcome {
    if !context.state.identity.swap {
        let why = "programs cannot be swapped; start with --enable-swap";
        return Err(SwapError::Disabled.because(why));
    }
    if context.state.pending.is_some() {
        return Err(SwapError::Ongoing.because("a program waits for its swap already"));
    }
    let program = LoadedProgram::from_json(call.text(0));
    let program = program.map_err(|error| Failure::internal(error.to_string()))?;
    context.state.pending = Some(Arc::new(program));
    Ok(None)
}

/// `bm_swap_configs`: the program that waits runs, with its initial state.
pub fn swap(context: &mut Context<'_>, _: &Arguments) -> Outcome {
    if !context.state.identity.swap {
        let why = "programs cannot be swapped; start with --enable-swap";
        return Err(SwapError::Disabled.because(why));
    }
    let program = context.state.pending.take();
    let program =
        program.ok_or_else(|| SwapError::NoneOngoing.because("no program waits for its swap"))?;
    let running = context.switch.pipeline().map(|pipeline| *pipeline.config());
    let config = running.unwrap_or(context.state.identity.pipeline);
    let pipeline = Pipeline::new(program, config);
    context.switch.install(pipeline);
    Ok(None)
}

/// `bm_reset_state`: everything as after the start, but for the mirroring sessions, which
/// BMv2 keeps.
pub fn reset(context: &mut Context<'_>, _: &Arguments) -> Outcome {
    let (pipeline, state) = context.parts()?;
    let (program, config) = (Arc::clone(pipeline.program()), *pipeline.config());
    let sessions = pipeline.clone_sessions();
    let sessions: Vec<_> = sessions
        .map(|(id, session)| (id, session.clone()))
        .collect();
    state.multicast = Multicast::default();
    state.default_members.clear();
    let mut fresh = Pipeline::new(program, config);
    for (id, session) in sessions {
        fresh
            .insert_clone_session(id, &session)
            .map_err(|error| Failure::internal(error.to_string()))?;
    }
    context.switch.install(fresh);
    Ok(None)
}

fn set_crc(
    context: &mut Context<'_>,
    call: &Arguments,
    width_bits: u32,
    reflect: [bool; 2],
) -> Outcome {
    let word = |number| {
        let value = call.field(2, number).map_or(0, integer) as u32;
        value & (u32::MAX >> (32 - width_bits))
    };
    let [reflect_input, reflect_output] = reflect;
    let parameters = CrcParameters {
        width_bits,
        polynomial: word(1),
        initial: word(2),
        final_xor: word(3),
        reflect_input,
        reflect_output,
    };
    let pipeline = context.pipeline()?;
    let set = pipeline.set_crc(call.text(1), parameters);
    set.map_err(|error| {
        let code = match &error {
            ControlError::NotFound { .. } => CrcError::InvalidName,
            _ => CrcError::WrongType,
        };
        code.because(error.to_string())
    })?;
    Ok(None)
}

fn reflections(call: &Arguments) -> [bool; 2] {
    [4, 5].map(|number| matches!(call.field(2, number), Some(Value::Bool(true))))
}

/// `bm_set_crc16_custom_parameters`.
pub fn set_crc16(context: &mut Context<'_>, call: &Arguments) -> Outcome {
    set_crc(context, call, 16, reflections(call))
}

/// `bm_set_crc32_custom_parameters`.
pub fn set_crc32(context: &mut Context<'_>, call: &Arguments) -> Outcome {
    set_crc(context, call, 32, reflections(call))
}

/// `bm_set_toeplitz_hash_key`: no program with such a hash is loaded.
pub fn set_toeplitz(_: &mut Context<'_>, call: &Arguments) -> Outcome {
    let why = format!("calculation {:?} is no Toeplitz hash", call.text(1));
    Err(CrcError::WrongType.because(why))
}

/// Lists of the kinds of `BmResourceType` in the JSON.
const RESOURCES: [&str; 6] = [
    "tables",
    "action_profiles",
    "counter_arrays",
    "meter_arrays",
    "register_arrays",
    "learn_lists",
];

/// `bm_get_id_from_name`: the id that the JSON gives an object.
pub fn object_id(context: &mut Context<'_>, call: &Arguments) -> Outcome {
    let kind = call.integer(1);
    let resource = usize::try_from(kind).ok();
    let resource = resource.and_then(|kind| RESOURCES.get(kind));
    let list = *resource
        .ok_or_else(|| LookupError::InvalidType.because(format!("kind of object {kind}")))?;
    let ids = context.pipeline()?.program().object_ids(list);
    let name = call.text(2);
    let id = ids.get(name);
    let id =
        id.ok_or_else(|| LookupError::InvalidName.because(format!("no {name:?} in {list}")))?;
    Ok(Some(Value::I32(*id as i32)))
}

/// The list that a call is about, and who publishes it.
struct LearnList {
    id: u16,
    installed: Installed,
    notifier: Option<Arc<Notifier>>,
}

fn learn_list(context: &mut Context<'_>, call: &Arguments) -> Result<LearnList, Failure> {
    let installed = context.switch.installed().ok_or_else(no_program)?;
    let list = call.integer(1);
    let mut ids = installed.program.digest_list_ids();
    let Some(id) = ids.find(|id| i64::from(*id) == list) else {
        let why = format!("there is no learning list {list}");
        return Err(LearnError::InvalidList.because(why));
    };
    drop(ids);
    Ok(LearnList {
        id,
        installed,
        notifier: context.state.notifier.clone(),
    })
}

/// `bm_learning_ack`.
pub fn acknowledge(context: &mut Context<'_>, call: &Arguments) -> Outcome {
    let list = learn_list(context, call)?;
    if let Some(notifier) = &list.notifier {
        let buffer = call.integer(2) as u64;
        let samples = call.items(3).iter().map(|sample| integer(sample) as i32);
        let samples: Vec<i32> = samples.collect();
        notifier.acknowledge(&list.installed, list.id, buffer, &samples);
    }
    Ok(None)
}

/// `bm_learning_ack_buffer`.
pub fn acknowledge_buffer(context: &mut Context<'_>, call: &Arguments) -> Outcome {
    let list = learn_list(context, call)?;
    if let Some(notifier) = &list.notifier {
        notifier.acknowledge_buffer(&list.installed, list.id, call.integer(2) as u64);
    }
    Ok(None)
}

/// `bm_learning_set_timeout`. As in BMv2, what is below 0 is very long.
pub fn set_learn_timeout(context: &mut Context<'_>, call: &Arguments) -> Outcome {
    let list = learn_list(context, call)?;
    if let Some(notifier) = &list.notifier {
        notifier.set_timeout(&list.installed, list.id, call.integer(2) as u32);
    }
    Ok(None)
}

/// `bm_learning_set_buffer_size`. As in BMv2, what is below 0 is very large.
pub fn set_learn_buffer(context: &mut Context<'_>, call: &Arguments) -> Outcome {
    let list = learn_list(context, call)?;
    if let Some(notifier) = &list.notifier {
        notifier.set_buffer_samples(&list.installed, list.id, call.integer(2) as u32);
    }
    Ok(None)
}
