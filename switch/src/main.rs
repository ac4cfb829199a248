//! `wormcast-switch`: a drop-in for BMv2's `simple_switch_grpc`.

mod command_line;
mod console;
mod event_log_service;
mod gnmi_service;
mod message_service;
mod notification_service;
mod replay_service;
mod switches;
mod thrift_service;
mod traces;

use std::error::Error;
use std::fs::{self, OpenOptions};
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};

use command_line::{LogTo, P4Runtime, Settings, Task};
use console::{complain, say};
use switches::{Started, Startup, Switches};
use traces::Traces;
use wormcast_switch::metrics::{Devices, MetricsServer};
use wormcast_switch_dataplane::Dataplane;
use wormcast_switch_dataplane::log::{Level, Log};
use wormcast_switch_flow::cycle::RingText;
use wormcast_switch_listen::Listener;
use wormcast_switch_p4runtime::TlsSettings;
use wormcast_switch_pipeline::PipelineConfig;

/// How long connected clients have to notice that the switch ends.
const GRACE: Duration = Duration::from_millis(200);

/// How often it is looked whether the data plane still runs.
const WATCH_INTERVAL: Duration = Duration::from_millis(500);

fn main() -> ExitCode {
    let settings = match command_line::parse(std::env::args()) {
        Ok(Task::Run(settings)) => settings,
        Ok(Task::Print(text)) => {
            say(format_args!("{}", text.trim_end()));
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            // Nobody is left to tell if it cannot be printed.
            let _ = error.print();
            return if error.use_stderr() {
                ExitCode::FAILURE
            } else {
                ExitCode::SUCCESS
            };
        }
    };
    match run(*settings) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(format_args!("{error}"));
            ExitCode::FAILURE
        }
    }
}

fn run(settings: Settings) -> Result<(), Box<dyn Error>> {
    let log = open_log(&settings)?;
    settings
        .statistics
        .as_deref()
        .map_or(Ok(()), can_be_written)?;
    for note in &settings.notes {
        complain(format_args!("note: {note}"));
    }
    if let Some(mode) = settings.socket_mode {
        mode.apply();
    }
    let pipeline_config = PipelineConfig {
        drop_port: settings.drop_port,
        priorities: settings.priority_queues,
        seed: settings.seed,
        recirculations_max: settings.recirculations,
        compiler: wormcast_switch_jit::compiler_of(settings.execution),
    };
    let traces = Traces::new(&settings, log.clone())?;
    let tls = settings.tls.settings()?;
    let started = Startup::new(&settings)?.start(log)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let (dataplane, ended) =
        runtime.block_on(serve(started, pipeline_config, tls, &settings, &traces))?;
    dataplane.stop();
    runtime.shutdown_timeout(GRACE);
    let ended_well = dataplane.join();
    ended?;
    if ended_well {
        Ok(())
    } else {
        Err("the data plane ended by a panic".into())
    }
}

/// Serves until a signal ends it; the data plane goes on. The second value is an error if
/// it was not a signal that ended it.
async fn serve(
    started: Started,
    pipeline_config: PipelineConfig,
    tls: Option<TlsSettings>,
    settings: &Settings,
    traces: &Traces<'_>,
) -> Result<(Dataplane, Result<(), Box<dyn Error>>), Box<dyn Error>> {
    // Before anybody is told that the switch is there, who might end it at once.
    let signals = Signals::new()?;
    let mut switches = started.control(pipeline_config, traces).await?;
    if settings.needs_config {
        switches
            .each()
            .for_each(|(_, _, server)| server.need_config());
    }
    tokio::spawn(switches.dataplane.link_watch(switches.log.clone()).run());
    let listener = listen(settings).await?;
    let notifiers = notification_service::start(settings, &switches).await?;
    let event_log = event_log_service::start(settings, &switches).await?;
    thrift_service::start(
        settings,
        pipeline_config,
        &switches,
        &notifiers,
        event_log.as_deref(),
    )?;
    replay_service::start(settings, &switches)?;
    message_service::start(settings, &mut switches).await?;
    let metrics = serve_metrics(settings, &switches).await?;
    let ended = tokio::select! {
        () = watch_deadlocks(&switches) => Err("the deadlock watch has ended".into()),
        () = metrics => Err("the metrics server has ended".into()),
        served = serve_grpc(listener, tls, &switches) => served,
        ended = wait_for_end(signals, &switches, settings) => ended,
    };
    switches
        .report(settings.statistics.as_deref(), Level::Debug)
        .await;
    Ok((switches.dataplane, ended))
}

/// The listener of P4Runtime; `None` where there is to be none.
async fn listen(settings: &Settings) -> Result<Option<Listener>, Box<dyn Error>> {
    if settings.p4runtime == P4Runtime::None {
        return Ok(None);
    }
    let listener = match Listener::bind(&settings.address).await {
        Ok(listener) => listener,
        Err(error)
            if settings.p4runtime == P4Runtime::IfFree
                && error.kind() == io::ErrorKind::AddrInUse =>
        {
            complain(format_args!(
                "note: {} is taken, so there is no P4Runtime server; \
                 --grpc-server-addr gives it another address",
                settings.address
            ));
            return Ok(None);
        }
        Err(error) => {
            return Err(format!("--grpc-server-addr {}: {error}", settings.address).into());
        }
    };
    match listener.local_address() {
        Some(address) => say(format_args!("Server listening on {address}")),
        None => say(format_args!("Server listening on {}", settings.address)),
    }
    Ok(Some(listener))
}

/// Serves P4Runtime, and gNMI at the same address; without a listener, never ends.
async fn serve_grpc(
    listener: Option<Listener>,
    tls: Option<TlsSettings>,
    switches: &Switches,
) -> Result<(), Box<dyn Error>> {
    match listener {
        Some(listener) => {
            let served = wormcast_switch_p4runtime::serve_beside(
                listener,
                tls.as_ref(),
                switches.devices.clone(),
                gnmi_service::routes(switches),
                std::future::pending(),
            );
            Ok(served.await?)
        }
        None => std::future::pending().await,
    }
}

/// The server of `--metrics-addr`, to be polled; without one, what never ends.
async fn serve_metrics(
    settings: &Settings,
    switches: &Switches,
) -> Result<Pin<Box<dyn Future<Output = ()>>>, Box<dyn Error>> {
    let Some(address) = &settings.metrics_address else {
        return Ok(Box::pin(std::future::pending()));
    };
    let requests = switches.devices.requests();
    let devices = switches.metrics_devices();
    let devices: Devices = Arc::new(move || devices.clone());
    let metrics = MetricsServer::bind(address, devices, requests)
        .await
        .map_err(|error| format!("--metrics-addr {address}: {error}"))?;
    say(format_args!(
        "Metrics on http://{}/metrics",
        metrics.local_address()?
    ));
    Ok(Box::pin(metrics.serve()))
}

/// Reports rings of switches that wait for one another; never ends.
async fn watch_deadlocks(switches: &Switches) {
    let mut watch = switches.dataplane.deadlock_watch();
    let interval = switches.deadlock_interval;
    let Some(interval) = interval.filter(|_| watch.is_needed()) else {
        return std::future::pending().await;
    };
    let mut interval = tokio::time::interval(interval);
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
        for ring in watch.look().await {
            switches.warn(format_args!("deadlock: {}", RingText(&ring)));
        }
    }
}

fn open_log(settings: &Settings) -> Result<Log, Box<dyn Error>> {
    match &settings.log {
        LogTo::Nowhere => Ok(Log::off()),
        LogTo::Console => Ok(Log::to_console(settings.log_level)),
        LogTo::File(files) => Log::to_file(settings.log_level, files.clone())
            .map_err(|error| format!("--log-file {}: {error}", files.name(0).display()).into()),
    }
}

/// Statistics are written at the end: that they have no place is said before.
fn can_be_written(statistics: &Path) -> Result<(), String> {
    let wrong = |why: String| Err(format!("--statistics {}: {why}", statistics.display()));
    let folder = statistics
        .parent()
        .filter(|folder| *folder != Path::new(""));
    match folder {
        Some(folder) if !folder.is_dir() => {
            wrong(format!("there is no directory {}", folder.display()))
        }
        _ if statistics.is_dir() => wrong("it is a directory; name a file".to_owned()),
        // Opening a pipe would wait for its reader, and a link may lead to nothing yet.
        _ if statistics.is_symlink() || (statistics.exists() && !statistics.is_file()) => Ok(()),
        _ => match OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(statistics)
        {
            // Whoever waits for the statistics is to find none before they are written.
            Ok(_) => fs::remove_file(statistics).or_else(|error| wrong(error.to_string())),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let opened = OpenOptions::new().append(true).open(statistics);
                opened.map(drop).or_else(|error| wrong(error.to_string()))
            }
            Err(error) => wrong(error.to_string()),
        },
    }
}

/// Signals that the switch heeds.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    ask: Signal,
}

impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            ask: signal(SignalKind::user_defined1())?,
        })
    }
}

/// Waits for a signal that ends the switch; `Err` if the data plane ends by itself.
async fn wait_for_end(
    mut signals: Signals,
    switches: &Switches,
    settings: &Settings,
) -> Result<(), Box<dyn Error>> {
    let mut watch = tokio::time::interval(WATCH_INTERVAL);
    loop {
        tokio::select! {
            _ = signals.terminate.recv() => return Ok(()),
            _ = signals.interrupt.recv() => return Ok(()),
            _ = signals.ask.recv() => {
                switches.report(settings.statistics.as_deref(), Level::Info).await;
            }
            _ = watch.tick() => {
                if switches.dataplane.has_ended() {
                    return Err("the data plane has ended".into());
                }
            }
        }
    }
}
