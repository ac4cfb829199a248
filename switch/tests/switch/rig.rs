//! A whole switch in this process, and a controller connected to it.

use std::time::Duration;

use prost::Message;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::service::Routes;
use tonic::transport::Channel;
use tonic::{Status, Streaming};

use wormcast_switch_dataplane::log::Log;
use wormcast_switch_dataplane::{Dataplane, DataplaneHandle, DataplaneSettings, SwitchSettings};
use wormcast_switch_gnmi::{Device, Gnmi, Targets};
use wormcast_switch_listen::{Address, Listener};
use wormcast_switch_p4runtime::proto::p4::config::v1::P4Info;
use wormcast_switch_p4runtime::proto::p4::v1::p4_runtime_client::P4RuntimeClient;
use wormcast_switch_p4runtime::proto::p4::v1::set_forwarding_pipeline_config_request::Action;
use wormcast_switch_p4runtime::proto::p4::v1::{
    Entity, ForwardingPipelineConfig, MasterArbitrationUpdate, ReadRequest, Role,
    SetForwardingPipelineConfigRequest, StreamMessageRequest, StreamMessageResponse, Uint128,
    Update, WriteRequest, stream_message_request, stream_message_response,
};
use wormcast_switch_p4runtime::{Server, ServerSettings};
use wormcast_switch_pipeline::{PipelineConfig, PortId};

pub const DEVICE_ID: u64 = 7;
pub const CPU_PORT: u16 = 510;

/// Against hanging alone: how long anything may take that should happen at once, however slow the machine is.
pub const PATIENCE: Duration = Duration::from_secs(600);

/// Runs what a test awaits on its own thread, whose network namespace may be its own.
pub fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

/// A data plane without interfaces.
pub fn settings() -> SwitchSettings {
    SwitchSettings {
        cpu_port: Some(PortId(CPU_PORT)),
        ..SwitchSettings::without_ports(DEVICE_ID, 1024)
    }
}

/// The switches of a data plane, as gNMI addresses them.
pub fn targets(dataplane: &Dataplane) -> Targets {
    let device = |(id, handle): (u64, &DataplaneHandle)| Device {
        id,
        name: None,
        dataplane: handle.clone(),
    };
    Targets::new(dataplane.handles().map(device).collect())
}

/// A switch that listens on the loopback.
pub struct Rig {
    pub dataplane: DataplaneHandle,
    pub server: Server,
    threads: Dataplane,
    pub address: String,
}

impl Rig {
    pub async fn start() -> Self {
        Self::start_with(&settings()).await
    }

    pub async fn start_with(settings: &SwitchSettings) -> Self {
        Self::start_as(&DataplaneSettings::single(settings.clone(), 1)).await
    }

    /// The first of these switches, which has the device id of the tests.
    pub async fn start_as(settings: &DataplaneSettings) -> Self {
        Self::start_logged(settings, Log::off()).await
    }

    /// The same, with a log.
    pub async fn start_logged(settings: &DataplaneSettings, log: Log) -> Self {
        let (dataplane, from_dataplane) = Dataplane::start(settings, log.clone()).unwrap();
        let handle = dataplane.handle(DEVICE_ID).unwrap();
        let (_, from_dataplane) = from_dataplane.into_iter().next().unwrap();
        let server_settings = ServerSettings {
            device_id: DEVICE_ID,
            pipeline: PipelineConfig::default(),
        };
        let server = Server::new(server_settings, handle.clone(), from_dataplane, log);
        let address: Address = "127.0.0.1:0".parse().unwrap();
        let listener = Listener::bind(&address).await.unwrap();
        let address = format!("http://{}", listener.local_address().unwrap());
        let gnmi = Gnmi::new(targets(&dataplane)).into_server();
        tokio::spawn(dataplane.link_watch(Log::off()).run());
        tokio::spawn(wormcast_switch_p4runtime::serve_beside(
            listener,
            None,
            server.clone(),
            Routes::new(gnmi),
            std::future::pending(),
        ));
        Self {
            dataplane: handle,
            server,
            threads: dataplane,
            address,
        }
    }

    /// Ends the data plane; the server goes on.
    pub fn stop_dataplane(&self) {
        self.threads.stop();
    }

    pub async fn connect(&self) -> P4RuntimeClient<Channel> {
        P4RuntimeClient::connect(self.address.clone())
            .await
            .unwrap()
    }

    /// A controller that is primary, with the test program set.
    pub async fn controller(&self) -> Controller {
        self.controller_of(objects()).await
    }

    /// A controller that is primary, with a program set.
    pub async fn controller_of(&self, config: ForwardingPipelineConfig) -> Controller {
        let mut controller = Controller::open(self, 1).await;
        controller.arbitrate(1).await;
        controller
            .set_config(Action::VerifyAndCommit, config)
            .await
            .unwrap();
        controller
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.threads.stop();
    }
}

/// The config of `programs/entities.p4`.
pub fn entities() -> ForwardingPipelineConfig {
    let p4info = include_bytes!("../programs/entities.p4info.bin");
    ForwardingPipelineConfig {
        p4info: Some(P4Info::decode(p4info.as_slice()).unwrap()),
        p4_device_config: include_bytes!("../programs/entities.json").to_vec(),
        cookie: None,
    }
}

/// The config of `programs/objects.p4`.
pub fn objects() -> ForwardingPipelineConfig {
    let p4info = include_bytes!("../programs/objects.p4info.bin");
    ForwardingPipelineConfig {
        p4info: Some(P4Info::decode(p4info.as_slice()).unwrap()),
        p4_device_config: include_bytes!("../programs/objects.json").to_vec(),
        cookie: None,
    }
}

/// A client with its stream channel.
pub struct Controller {
    pub client: P4RuntimeClient<Channel>,
    pub device_id: u64,
    pub election_id: Uint128,
    /// Set by arbitration; the default one has no name.
    pub role: Option<Role>,
    outgoing: mpsc::Sender<StreamMessageRequest>,
    incoming: Streaming<StreamMessageResponse>,
}

impl Controller {
    /// Opens a stream and says nothing yet.
    pub async fn open(rig: &Rig, election_id: u64) -> Self {
        Self::open_to(rig.connect().await, DEVICE_ID, election_id).await
    }

    /// The same, to one device of many.
    pub async fn open_to(
        mut client: P4RuntimeClient<Channel>,
        device_id: u64,
        election_id: u64,
    ) -> Self {
        let (outgoing, messages) = mpsc::channel(64);
        let stream = client
            .stream_channel(ReceiverStream::new(messages))
            .await
            .unwrap();
        Self {
            client,
            device_id,
            election_id: Uint128 {
                high: 0,
                low: election_id,
            },
            role: None,
            outgoing,
            incoming: stream.into_inner(),
        }
    }

    pub async fn say(&self, message: stream_message_request::Update) {
        let message = StreamMessageRequest {
            update: Some(message),
        };
        self.outgoing.send(message).await.unwrap();
    }

    pub async fn hear(&mut self) -> Result<stream_message_response::Update, Status> {
        let message = tokio::time::timeout(PATIENCE, self.incoming.message());
        let message = message.await.expect("the switch says nothing")?;
        Ok(message
            .expect("the switch ended the stream")
            .update
            .unwrap())
    }

    /// Sends an arbitration message and gives the answer.
    pub async fn arbitrate(&mut self, election_id: u64) -> MasterArbitrationUpdate {
        self.election_id.low = election_id;
        let update = MasterArbitrationUpdate {
            device_id: self.device_id,
            election_id: Some(self.election_id),
            role: self.role.clone(),
            ..MasterArbitrationUpdate::default()
        };
        self.say(stream_message_request::Update::Arbitration(update))
            .await;
        self.hear_arbitration().await
    }

    pub async fn hear_arbitration(&mut self) -> MasterArbitrationUpdate {
        match self.hear().await.unwrap() {
            stream_message_response::Update::Arbitration(update) => update,
            other => panic!("{other:?}"),
        }
    }

    pub async fn set_config(
        &mut self,
        action: Action,
        config: impl Into<Option<ForwardingPipelineConfig>>,
    ) -> Result<(), Status> {
        let request = SetForwardingPipelineConfigRequest {
            device_id: self.device_id,
            election_id: Some(self.election_id),
            role: self.role_name(),
            action: action as i32,
            config: config.into(),
            ..SetForwardingPipelineConfigRequest::default()
        };
        self.client
            .set_forwarding_pipeline_config(request)
            .await
            .map(|_| ())
    }

    fn role_name(&self) -> String {
        self.role
            .as_ref()
            .map_or(String::new(), |role| role.name.clone())
    }

    pub fn request(&self, updates: Vec<Update>) -> WriteRequest {
        WriteRequest {
            device_id: self.device_id,
            election_id: Some(self.election_id),
            role: self.role_name(),
            updates,
            ..WriteRequest::default()
        }
    }

    pub async fn write(&mut self, updates: Vec<Update>) -> Result<(), Status> {
        let request = self.request(updates);
        self.client.write(request).await.map(|_| ())
    }

    pub async fn read(&mut self, filters: Vec<Entity>) -> Result<Vec<Entity>, Status> {
        let request = ReadRequest {
            device_id: self.device_id,
            role: self.role_name(),
            entities: filters,
        };
        let mut stream = self.client.read(request).await?.into_inner();
        let mut found = Vec::new();
        while let Some(response) = stream.message().await? {
            found.extend(response.entities);
        }
        Ok(found)
    }
}
