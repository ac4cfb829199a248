//! The services, their methods, and what carries each out.
//!
//! Names and types are those of BMv2: `thrift_src/standard.thrift`, `simple_pre.thrift`,
//! `simple_pre_lag.thrift` and `targets/simple_switch/thrift/simple_switch.thrift` of
//! p4lang/behavioral-model.

use super::arguments::Arguments;
use super::context::Context;
use super::failure::{Application, Failure, Outcome};
use super::wire::{Message, MessageKind, Type, Value};
use super::{arrays, config, multicast, profiles, saved_state, tables, target, value_sets};

/// A method of a service.
#[derive(Debug)]
pub struct Method {
    /// Name of the service in the multiplexed protocol.
    pub service: &'static str,
    pub name: &'static str,
    /// Types of the arguments; the first one is field 1.
    pub arguments: &'static [Type],
    run: fn(&mut Context<'_>, &Arguments) -> Outcome,
}

const STANDARD: &str = "standard";
const PRE: &str = "simple_pre";
const PRE_LAG: &str = "simple_pre_lag";
const SWITCH: &str = "simple_switch";

const B: Type = Type::Bool;
const S: Type = Type::Binary;
const I2: Type = Type::I16;
const I4: Type = Type::I32;
const I8: Type = Type::I64;
const L: Type = Type::List;
const R: Type = Type::Struct;

const fn method(
    service: &'static str,
    name: &'static str,
    arguments: &'static [Type],
    run: fn(&mut Context<'_>, &Arguments) -> Outcome,
) -> Method {
    Method {
        service,
        name,
        arguments,
        run,
    }
}

const fn standard(
    name: &'static str,
    arguments: &'static [Type],
    run: fn(&mut Context<'_>, &Arguments) -> Outcome,
) -> Method {
    method(STANDARD, name, arguments, run)
}

const fn switch(
    name: &'static str,
    arguments: &'static [Type],
    run: fn(&mut Context<'_>, &Arguments) -> Outcome,
) -> Method {
    method(SWITCH, name, arguments, run)
}

/// Every method there is. The first argument of most is a context, of which there is one.
#[rustfmt::skip]
pub const METHODS: &[Method] = &[
    standard("bm_mt_get_num_entries", &[I4, S], tables::count),
    standard("bm_mt_clear_entries", &[I4, S, B], tables::clear),
    standard("bm_mt_add_entry", &[I4, S, L, S, L, R], tables::add),
    standard("bm_mt_set_default_action", &[I4, S, S, L], tables::set_default),
    standard("bm_mt_reset_default_entry", &[I4, S], tables::reset_default),
    standard("bm_mt_delete_entry", &[I4, S, I4], tables::delete),
    standard("bm_mt_modify_entry", &[I4, S, I4, S, L], tables::modify_call),
    standard("bm_mt_set_entry_ttl", &[I4, S, I4, I4], tables::set_timeout),
    standard("bm_mt_act_prof_add_member", &[I4, S, S, L], profiles::add_member),
    standard("bm_mt_act_prof_delete_member", &[I4, S, I4], profiles::delete_member),
    standard("bm_mt_act_prof_modify_member", &[I4, S, I4, S, L], profiles::modify_member),
    standard("bm_mt_act_prof_create_group", &[I4, S], profiles::create_group),
    standard("bm_mt_act_prof_delete_group", &[I4, S, I4], profiles::delete_group),
    standard("bm_mt_act_prof_add_member_to_group", &[I4, S, I4, I4], profiles::join_group),
    standard("bm_mt_act_prof_remove_member_from_group", &[I4, S, I4, I4], profiles::leave_group),
    standard("bm_mt_act_prof_get_members", &[I4, S], profiles::members),
    standard("bm_mt_act_prof_get_member", &[I4, S, I4], profiles::member),
    standard("bm_mt_act_prof_get_groups", &[I4, S], profiles::groups),
    standard("bm_mt_act_prof_get_group", &[I4, S, I4], profiles::group),
    standard("bm_mt_indirect_add_entry", &[I4, S, L, I4, R], tables::add_member),
    standard("bm_mt_indirect_modify_entry", &[I4, S, I4, I4], tables::modify_member),
    standard("bm_mt_indirect_delete_entry", &[I4, S, I4], tables::delete_indirect),
    standard("bm_mt_indirect_set_entry_ttl", &[I4, S, I4, I4], tables::set_timeout),
    standard("bm_mt_indirect_set_default_member", &[I4, S, I4], tables::set_default_member),
    standard("bm_mt_indirect_reset_default_entry", &[I4, S], tables::reset_default),
    standard("bm_mt_indirect_ws_add_entry", &[I4, S, L, I4, R], tables::add_group),
    standard("bm_mt_indirect_ws_modify_entry", &[I4, S, I4, I4], tables::modify_group),
    standard("bm_mt_indirect_ws_set_default_group", &[I4, S, I4], tables::set_default_group),
    standard("bm_mt_read_counter", &[I4, S, I4], tables::read_counter),
    standard("bm_mt_reset_counters", &[I4, S], tables::reset_counters),
    standard("bm_mt_write_counter", &[I4, S, I4, R], tables::write_counter),
    standard("bm_mt_set_meter_rates", &[I4, S, I4, L], tables::set_meter),
    standard("bm_mt_get_meter_rates", &[I4, S, I4], tables::meter),
    standard("bm_mt_get_entries", &[I4, S], tables::entries),
    standard("bm_mt_get_entry", &[I4, S, I4], tables::entry),
    standard("bm_mt_get_default_entry", &[I4, S], tables::default),
    standard("bm_mt_get_entry_from_key", &[I4, S, L, R], tables::entry_with_key),
    standard("bm_counter_read", &[I4, S, I4], arrays::read_counter),
    standard("bm_counter_reset_all", &[I4, S], arrays::reset_counter),
    standard("bm_counter_write", &[I4, S, I4, R], arrays::write_counter),
    standard("bm_learning_ack", &[I4, I4, I8, L], config::acknowledge),
    standard("bm_learning_ack_buffer", &[I4, I4, I8], config::acknowledge_buffer),
    standard("bm_learning_set_timeout", &[I4, I4, I4], config::set_learn_timeout),
    standard("bm_learning_set_buffer_size", &[I4, I4, I4], config::set_learn_buffer),
    standard("bm_load_new_config", &[S], config::load),
    standard("bm_swap_configs", &[], config::swap),
    standard("bm_meter_array_set_rates", &[I4, S, L], arrays::set_meters),
    standard("bm_meter_set_rates", &[I4, S, I4, L], arrays::set_meter),
    standard("bm_meter_get_rates", &[I4, S, I4], arrays::read_meter),
    standard("bm_register_read", &[I4, S, I4], arrays::read_register),
    standard("bm_register_read_all", &[I4, S], arrays::read_registers),
    standard("bm_register_write", &[I4, S, I4, I8], arrays::write_register),
    standard("bm_register_write_range", &[I4, S, I4, I4, I8], arrays::write_registers),
    standard("bm_register_reset", &[I4, S], arrays::reset_register),
    standard("bm_parse_vset_add", &[I4, S, S], value_sets::add),
    standard("bm_parse_vset_remove", &[I4, S, S], value_sets::remove),
    standard("bm_parse_vset_get", &[I4, S], value_sets::members),
    standard("bm_parse_vset_clear", &[I4, S], value_sets::clear),
    standard("bm_dev_mgr_add_port", &[S, I4, S], target::add_port),
    standard("bm_dev_mgr_remove_port", &[I4], target::remove_port),
    standard("bm_dev_mgr_show_ports", &[], target::ports),
    standard("bm_mgmt_get_info", &[], config::info),
    standard("bm_set_crc16_custom_parameters", &[I4, S, R], config::set_crc16),
    standard("bm_set_crc32_custom_parameters", &[I4, S, R], config::set_crc32),
    standard("bm_set_toeplitz_hash_key", &[I4, S, S], config::set_toeplitz),
    standard("bm_reset_state", &[], config::reset),
    standard("bm_get_config", &[], config::config),
    standard("bm_get_config_md5", &[], config::config_md5),
    standard("bm_get_id_from_name", &[I4, I4, S], config::object_id),
    standard("bm_serialize_state", &[], saved_state::serialize),

    method(PRE, "bm_mc_mgrp_create", &[I4, I4], multicast::create_group),
    method(PRE, "bm_mc_mgrp_destroy", &[I4, I4], multicast::destroy_group),
    method(PRE, "bm_mc_node_create", &[I4, I4, S], multicast::create_node),
    method(PRE, "bm_mc_node_associate", &[I4, I4, I4], multicast::associate),
    method(PRE, "bm_mc_node_dissociate", &[I4, I4, I4], multicast::dissociate),
    method(PRE, "bm_mc_node_destroy", &[I4, I4], multicast::destroy_node),
    method(PRE, "bm_mc_node_update", &[I4, I4, S], multicast::update_node),
    method(PRE, "bm_mc_get_entries", &[I4], multicast::entries),

    method(PRE_LAG, "bm_mc_mgrp_create", &[I4, I4], multicast::create_group),
    method(PRE_LAG, "bm_mc_mgrp_destroy", &[I4, I4], multicast::destroy_group),
    method(PRE_LAG, "bm_mc_node_create", &[I4, I4, S, S], multicast::create_node_with_lags),
    method(PRE_LAG, "bm_mc_node_associate", &[I4, I4, I4], multicast::associate),
    method(PRE_LAG, "bm_mc_node_dissociate", &[I4, I4, I4], multicast::dissociate),
    method(PRE_LAG, "bm_mc_node_destroy", &[I4, I4], multicast::destroy_node),
    method(PRE_LAG, "bm_mc_node_update", &[I4, I4, S, S], multicast::update_node_with_lags),
    method(PRE_LAG, "bm_mc_set_lag_membership", &[I4, I2, S], multicast::set_lag),
    method(PRE_LAG, "bm_mc_get_entries", &[I4], multicast::entries_with_lags),

    switch("mirroring_mapping_add", &[I4, I4], target::add_mapping),
    switch("mirroring_mapping_delete", &[I4], target::delete_mapping),
    switch("mirroring_mapping_get_egress_port", &[I4], target::get_mapping),
    switch("mirroring_session_add", &[I4, R], target::add_session),
    switch("mirroring_session_delete", &[I4], target::delete_session),
    switch("mirroring_session_get", &[I4], target::get_session),
    switch("set_egress_priority_queue_depth", &[I4, I4, I4], target::set_priority_depth),
    switch("set_egress_queue_depth", &[I4, I4], target::set_port_depth),
    switch("set_all_egress_queue_depths", &[I4], target::set_all_depths),
    switch("set_egress_priority_queue_rate", &[I4, I4, I8], target::set_priority_rate),
    switch("set_egress_queue_rate", &[I4, I8], target::set_port_rate),
    switch("set_all_egress_queue_rates", &[I8], target::set_all_rates),
    switch("get_time_elapsed_us", &[], target::elapsed),
    switch("get_time_since_epoch_us", &[], target::since_epoch),
];

/// The method with a name `service:method`.
fn find(name: &str) -> Result<&'static Method, Failure> {
    let unknown = |why: String| Failure::Application {
        kind: Application::UnknownMethod,
        why,
    };
    let Some((service, name)) = name.split_once(':') else {
        return Err(unknown(format!(
            "{name:?} names no service; calls must be multiplexed"
        )));
    };
    let mut methods = METHODS.iter();
    let found = methods.find(|method| method.service == service && method.name == name);
    found.ok_or_else(|| unknown(format!("service {service:?} has no method {name:?}")))
}

/// Carries a call out. Gives the answer, and why in words if the call failed.
pub fn answer(context: &mut Context<'_>, call: Message) -> (Message, Option<String>) {
    let Message {
        name,
        kind,
        sequence,
        fields,
    } = call;
    let outcome = match kind {
        MessageKind::Call | MessageKind::Oneway => find(&name).and_then(|method| {
            let arguments = Arguments::check(method.arguments, fields)?;
            (method.run)(context, &arguments)
        }),
        _ => Err(Failure::Application {
            kind: Application::InvalidMessageType,
            why: "a reply where a call should be".to_owned(),
        }),
    };
    let (kind, fields, why) = match outcome {
        Ok(value) => {
            let result = value.map(|value| (0, value));
            (MessageKind::Reply, result.into_iter().collect(), None)
        }
        Err(Failure::Declared { code, why }) => {
            let exception = Value::Struct(vec![(1, Value::I32(code))]);
            (MessageKind::Reply, vec![(1, exception)], Some(why))
        }
        Err(Failure::Application { kind, why }) => {
            let exception = vec![(1, Value::text(&why)), (2, Value::I32(kind as i32))];
            (MessageKind::Exception, exception, Some(why))
        }
    };
    let why = why.map(|why| format!("{name}: {why}"));
    // The answer names the method alone, without its service.
    let name = match name.split_once(':') {
        Some((_, method)) => method.to_owned(),
        None => name,
    };
    let answer = Message {
        name,
        kind,
        sequence,
        fields,
    };
    (answer, why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_method_is_there_twice() {
        let names: BTreeSet<_> = METHODS
            .iter()
            .map(|method| (method.service, method.name))
            .collect();
        assert_eq!(names.len(), METHODS.len());
    }

    #[test]
    fn methods_that_the_document_names_are_there() {
        let text = include_str!("../../../docs/drop-in.md");
        let named: Vec<_> = text
            .split('`')
            .filter(|name| name.starts_with("bm_") && !name.contains([' ', '(', '\n']))
            .collect();
        assert!(named.len() > 5, "{named:?}");
        for name in named {
            let is = |method: &Method| {
                name.strip_suffix('*').map_or_else(
                    || method.name == name,
                    |begins| method.name.starts_with(begins),
                )
            };
            assert!(METHODS.iter().any(is), "there is no {name}");
        }
    }

    #[test]
    fn names_without_a_method() {
        for (name, expected) in [
            ("bm_reset_state", "names no service"),
            (
                "standard:bm_mc_get_entries",
                "service \"standard\" has no method",
            ),
            ("psa_switch:get", "service \"psa_switch\" has no method"),
        ] {
            let Err(Failure::Application { kind, why }) = find(name) else {
                panic!("{name}");
            };
            assert_eq!(kind, Application::UnknownMethod);
            assert!(why.contains(expected), "{why}");
        }
    }
}
