//! A controller that registers whoever comes and gives each its plan.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use tokio::net::UnixListener;
use tokio::sync::{mpsc, oneshot};
use tokio_stream::wrappers::{ReceiverStream, UnixListenerStream};
use tonic::{Request, Response, Status, Streaming};
use wormcast_agent::directory::rpc;
use wormcast_agent::directory::rpc::agent_directory_server::{
    AgentDirectory, AgentDirectoryServer,
};
use wormcast_agent::directory::rpc::agent_message::Body as AgentBody;
use wormcast_agent::directory::rpc::controller_message::Body as ControllerBody;

type Outgoing = mpsc::Sender<Result<rpc::ControllerMessage, Status>>;

/// What the controller knows, over restarts too.
#[derive(Default)]
pub struct Known {
    pub plans: BTreeMap<u32, rpc::Plan>,
    pub registered: Vec<rpc::Register>,
    pub applied: Vec<(u32, rpc::PlanApplied)>,
    pub reports: Vec<(u32, rpc::MemberReport)>,
    pub transfers: Vec<(u32, rpc::TransferReport)>,
    pub statistics: BTreeMap<u32, rpc::Statistics>,
    /// What each host said last, on a stream that may be gone.
    pub receivers: BTreeMap<u32, rpc::OpenReceivers>,
    /// How many of them it had told when it answered a plan, by host and epoch.
    pub open_when_applied: BTreeMap<(u32, u64), Option<usize>>,
    /// Names that are not to be taken, with the reason.
    pub refuse: BTreeMap<String, String>,
    streams: BTreeMap<u32, Outgoing>,
}

pub struct TestController {
    pub known: Arc<Mutex<Known>>,
    path: PathBuf,
    running: Option<Running>,
}

struct Running {
    stop: oneshot::Sender<()>,
    thread: std::thread::JoinHandle<()>,
}

impl TestController {
    pub fn start(path: &Path) -> Self {
        let mut controller = Self {
            known: Arc::default(),
            path: path.to_owned(),
            running: None,
        };
        controller.resume();
        controller
    }

    pub fn address(&self) -> String {
        format!("unix:{}", self.path.display())
    }

    /// As if killed: streams break, what it knows stays.
    pub fn stop(&mut self) {
        if let Some(running) = self.running.take() {
            let _ = running.stop.send(());
            running.thread.join().unwrap();
        }
        self.known.lock().unwrap().streams.clear();
        let _ = std::fs::remove_file(&self.path);
    }

    pub fn resume(&mut self) {
        let (stop, stopped) = oneshot::channel();
        let (ready, started) = std::sync::mpsc::channel();
        let (path, known) = (self.path.clone(), Arc::clone(&self.known));
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let listener = UnixListener::bind(&path).unwrap();
                ready.send(()).unwrap();
                let service = AgentDirectoryServer::new(Directory { known });
                let server = tonic::transport::Server::builder()
                    .add_service(service)
                    .serve_with_incoming(UnixListenerStream::new(listener));
                tokio::select! {
                    result = server => result.unwrap(),
                    _ = stopped => {}
                }
            });
        });
        started.recv().unwrap();
        self.running = Some(Running { stop, thread });
    }

    /// Plans for hosts 0 to n-1 at the ports of one switch, all in these groups that name them.
    pub fn set_plans(&self, hosts: u16, groups: &[rpc::Group]) {
        let hosts = u32::from(hosts);
        for host in 0..hosts {
            let route = |to: u32| rpc::Route {
                host: to,
                ports: vec![to as u8],
                share: 0,
            };
            let routes: Vec<rpc::Route> = (0..hosts).filter(|&to| to != host).map(route).collect();
            let mine = |group: &&rpc::Group| group.members.contains(&host);
            let plan = rpc::Plan {
                root_route: None,
                epoch: 1,
                host_id: host,
                tree_routes: routes.clone(),
                routes,
                routes_at_random: false,
                groups: groups.iter().filter(mine).cloned().collect(),
                train_frames: 1,
                unicast_train_frames: 0,
                tree_route_max: 0,
                rate_bytes: 0,
            };
            self.set_plan(plan);
        }
    }

    /// Gives a host a plan, at once if it is there; the epoch grows.
    pub fn set_plan(&self, mut plan: rpc::Plan) {
        let mut known = self.known.lock().unwrap();
        let host = plan.host_id;
        plan.epoch = known.plans.get(&host).map_or(1, |old| old.epoch + 1);
        known.plans.insert(host, plan.clone());
        if let Some(stream) = known.streams.get(&host) {
            let _ = stream.try_send(Ok(message(ControllerBody::Plan(plan))));
        }
    }

    pub fn plan(&self, host: u32) -> rpc::Plan {
        self.known.lock().unwrap().plans[&host].clone()
    }

    /// Sends something that need not make sense.
    pub fn send_raw(&self, host: u32, body: ControllerBody) {
        let known = self.known.lock().unwrap();
        known.streams[&host].try_send(Ok(message(body))).unwrap();
    }
}

impl Drop for TestController {
    fn drop(&mut self) {
        self.stop();
    }
}

fn message(body: ControllerBody) -> rpc::ControllerMessage {
    rpc::ControllerMessage { body: Some(body) }
}

struct Directory {
    known: Arc<Mutex<Known>>,
}

#[tonic::async_trait]
impl AgentDirectory for Directory {
    type AttachStream = ReceiverStream<Result<rpc::ControllerMessage, Status>>;

    async fn attach(
        &self,
        request: Request<Streaming<rpc::AgentMessage>>,
    ) -> Result<Response<Self::AttachStream>, Status> {
        let mut incoming = request.into_inner();
        let (outgoing, stream) = mpsc::channel(64);
        let known = Arc::clone(&self.known);
        tokio::spawn(async move {
            let mut host = None;
            while let Ok(Some(message)) = incoming.message().await {
                match message.body {
                    Some(AgentBody::Register(register)) => {
                        host = register_agent(&known, register, &outgoing)
                    }
                    Some(body) => note(&known, host.unwrap_or(u32::MAX), body),
                    None => {}
                }
            }
        });
        Ok(Response::new(ReceiverStream::new(stream)))
    }
}

fn register_agent(
    known: &Mutex<Known>,
    register: rpc::Register,
    outgoing: &Outgoing,
) -> Option<u32> {
    let mut known = known.lock().unwrap();
    if let Some(reason) = known.refuse.get(&register.name) {
        let refused = rpc::Refused {
            reason: reason.clone(),
        };
        outgoing
            .try_send(Ok(message(ControllerBody::Refused(refused))))
            .unwrap();
        return None;
    }
    let host_id = register.host_id.unwrap_or(0);
    known.registered.push(register);
    let registered = rpc::Registered {
        host_id,
        challenge: vec![9; 16],
    };
    outgoing
        .try_send(Ok(message(ControllerBody::Registered(registered))))
        .unwrap();
    if let Some(plan) = known.plans.get(&host_id) {
        outgoing
            .try_send(Ok(message(ControllerBody::Plan(plan.clone()))))
            .unwrap();
    }
    known.streams.insert(host_id, outgoing.clone());
    Some(host_id)
}

fn note(known: &Mutex<Known>, host: u32, body: AgentBody) {
    let mut known = known.lock().unwrap();
    match body {
        AgentBody::PlanApplied(applied) => {
            let open = known.receivers.get(&host).map(|open| open.receivers.len());
            known.open_when_applied.insert((host, applied.epoch), open);
            known.applied.push((host, applied));
        }
        AgentBody::MemberReport(report) => known.reports.push((host, report)),
        AgentBody::TransferReport(report) => known.transfers.push((host, report)),
        // Nothing is traced here, and nobody asks who lags.
        AgentBody::TraceSent(_) | AgentBody::ProbeSeen(_) | AgentBody::Answer(_) => {}
        AgentBody::LagAnswer(_) | AgentBody::BranchAnswer(_) => {}
        AgentBody::Statistics(statistics) => drop(known.statistics.insert(host, statistics)),
        AgentBody::OpenReceivers(open) => drop(known.receivers.insert(host, open)),
        AgentBody::Register(_) => panic!("registered twice"),
    }
}
