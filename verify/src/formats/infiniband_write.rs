//! Writing net lists.

use std::fmt::Write as _;

use super::document::Document;
use super::error::FormatError;
use super::infiniband::{HOST_GUIDS, SWITCH_GUIDS};
use wormcast_routing::topology::Attachment;
use wormcast_wire::{HostId, PortId, SwitchId};

/// What comes before a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Header {
    /// The GUID of the node.
    Short,
    /// Vendor, device and system image too, as ibnetdiscover prints them.
    Full,
}

/// Most bytes of a node description, its end marker excluded (InfiniBand Architecture
/// Specification, NodeDescription: 64 bytes).
const DESCRIPTION_BYTES_MAX: usize = 63;

pub(super) fn write(document: &Document, header: Header) -> Result<String, FormatError> {
    let topology = &document.topology;
    let mut text = match header {
        Header::Full => "#\n# Topology file\n#\n".to_owned(),
        Header::Short => "# Net list for ibsim. InfiniBand port p is port p - 1 of the topology.\n\
                          # GUIDs: 57430001 switch or 57430002 host, its id in the next three bytes.\n"
            .to_owned(),
    };
    let mut switch_names = Vec::new();
    for switch in topology.switches() {
        switch_names.push(describe(
            document.names.switches.get(&switch.id),
            "switch",
            switch.id.0,
        )?);
    }
    let switch_name =
        |id: SwitchId| &switch_names[topology.switch_index(id).expect("of this topology") as usize];
    let mut host_names = Vec::new();
    for host in topology.hosts() {
        host_names.push(describe(
            document.names.hosts.get(&host.id),
            "host",
            host.id.0,
        )?);
    }
    let host_name =
        |id: HostId| &host_names[topology.host_index(id).expect("of this topology") as usize];
    for switch in topology.switches() {
        let guid = switch_guid(switch.id);
        before(&mut text, header, guid);
        let name = switch_name(switch.id);
        let _ = writeln!(
            text,
            "switchguid=0x{guid:x}({guid:x})\n\
             Switch\t{} \"S-{guid:016x}\"\t\t# \"{name}\" base port 0 lid 0 lmc 0",
            switch.ports
        );
        for port in (0..switch.ports).filter_map(|port| PortId::new(port as u8)) {
            let number = port.get() + 1;
            match topology.attachment(switch.id, port) {
                None => {}
                Some(Attachment::Host(host)) => {
                    let (peer, name) = (host_guid(host), host_name(host));
                    let port_guid = peer + 1;
                    let _ = writeln!(
                        text,
                        "[{number}]\t\"H-{peer:016x}\"[1]({port_guid:x}) \t\t# \"{name}\" lid 0 4xSDR"
                    );
                }
                Some(Attachment::Switch(other, back)) => {
                    let (peer, name, back) =
                        (switch_guid(other), switch_name(other), back.get() + 1);
                    let _ = writeln!(
                        text,
                        "[{number}]\t\"S-{peer:016x}\"[{back}]\t\t# \"{name}\" lid 0 4xSDR"
                    );
                }
            }
        }
    }
    for host in topology.hosts() {
        let (guid, name) = (host_guid(host.id), host_name(host.id));
        before(&mut text, header, guid);
        let (switch, port) = (switch_guid(host.switch), host.port.get() + 1);
        let (switch_name, port_guid) = (switch_name(host.switch), guid + 1);
        let _ = writeln!(
            text,
            "caguid=0x{guid:x}\nCa\t1 \"H-{guid:016x}\"\t\t# \"{name}\"\n\
             [1]({port_guid:x}) \t\"S-{switch:016x}\"[{port}]\t\t# lid 0 lmc 0 \"{switch_name}\" lid 0 4xSDR"
        );
    }
    Ok(text)
}

fn before(text: &mut String, header: Header, guid: u64) {
    text.push('\n');
    if header == Header::Full {
        let _ = writeln!(text, "vendid=0x0\ndevid=0x0\nsysimgguid=0x{guid:x}");
    }
}

fn switch_guid(id: SwitchId) -> u64 {
    SWITCH_GUIDS + (u64::from(id.0) << 8)
}

fn host_guid(id: HostId) -> u64 {
    HOST_GUIDS + (u64::from(id.0) << 8)
}

fn describe(name: Option<&String>, what: &str, id: u16) -> Result<String, FormatError> {
    let Some(name) = name else {
        return Ok(format!("{what} {id}"));
    };
    let fits = name.len() <= DESCRIPTION_BYTES_MAX
        && !name.contains('"')
        && !name.contains(char::is_control)
        && !name.trim().is_empty();
    if !fits {
        let reason = format!(
            "the name {name:?} of {what} {id} does not fit; a description has 1 to \
             {DESCRIPTION_BYTES_MAX} bytes without quotes and control characters"
        );
        return Err(FormatError::new("unsupported", reason));
    }
    Ok(name.clone())
}
