//! gNMI of the switches of this process, beside P4Runtime.

use tonic::service::Routes;

use crate::switches::Switches;
use wormcast_switch_gnmi::{Device, Gnmi, Targets};

/// The service, for the gRPC server. Clients name a switch by its name or device id.
pub fn routes(switches: &Switches) -> Routes {
    let device = |(id, dataplane, _)| Device {
        id,
        name: switches.names.get(&id).cloned(),
        dataplane,
    };
    let targets = Targets::new(switches.each().map(device).collect());
    Routes::new(Gnmi::new(targets).into_server())
}
