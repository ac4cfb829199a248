//! `wormcast-switch`: a drop-in for BMv2's `simple_switch_grpc`.

mod command_line;
mod compatibility;

use std::error::Error;
use std::fs;
use std::io::BufWriter;
use std::path::Path;
use std::pin::Pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};

use command_line::{LogTo, Settings, Task};
use wormcast_switch::dataplane::{
    Attachment, Dataplane, DataplaneHandle, DataplaneSettings, Snapshot, SwitchSettings,
};
use wormcast_switch::log::{Level, Log};
use wormcast_switch::metrics::{Device, Devices, MetricsServer};
use wormcast_switch::p4rt::{Listener, Server, ServerSettings};
use wormcast_switch::pipeline::{Pipeline, PipelineConfig};
use wormcast_switch::program::Program;
use wormcast_switch::trace::{Filter, TraceSink, write_messages_to_log, write_to, write_to_log};

/// How long connected clients have to notice that the switch ends.
const GRACE: Duration = Duration::from_millis(200);

/// How often it is looked whether the data plane still runs.
const WATCH_INTERVAL: Duration = Duration::from_millis(500);

fn main() -> ExitCode {
    let settings = match command_line::parse(std::env::args()) {
        Ok(Task::Run(settings)) => settings,
        Ok(Task::Print(text)) => {
            print!("{text}");
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
            eprintln!("wormcast-switch: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(settings: Settings) -> Result<(), Box<dyn Error>> {
    let log = open_log(&settings)?;
    for note in &settings.notes {
        eprintln!("wormcast-switch: note: {note}");
    }
    let pipeline_config = PipelineConfig {
        drop_port: settings.drop_port,
        priorities: settings.priority_queues,
        seed: settings.seed,
    };
    let pipeline = match &settings.json {
        Some(path) => Some(Pipeline::new(Arc::new(load(path)?), pipeline_config)),
        None => None,
    };
    let switch = SwitchSettings {
        device_id: settings.device_id,
        name: String::new(),
        ports: settings.ports.clone(),
        cpu_port: settings.cpu_port,
        priorities: settings.priority_queues,
        queue_frames: settings.queue_frames,
        queueing: settings.queueing.clone(),
        ring_frames: settings.ring_frames,
        port_rate: settings.port_rate,
        impairments: settings.impairments.clone(),
        capture_directory: settings.capture_directory.clone(),
    };
    let dataplane_settings = DataplaneSettings::single(switch, settings.seed);
    let (dataplane, mut from_dataplane) = Dataplane::start(&dataplane_settings, log.clone())?;
    for port in &settings.ports {
        let Attachment::Interface(interface) = &port.attachment;
        println!("Adding interface {interface} as port {}", port.number.0);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let handle = dataplane.handle(settings.device_id);
    let from_dataplane = from_dataplane.pop().map(|(_, receiver)| receiver);
    let (Some(handle), Some(from_dataplane)) = (handle, from_dataplane) else {
        return Err("the data plane has no switch".into());
    };
    let served = runtime.block_on(async {
        for (filter, sink) in traces(&settings, &log)? {
            let added = handle.run(|engine| engine.tracing().add(filter, sink));
            added.await??;
        }
        if let Some(pipeline) = pipeline {
            handle.run(move |engine| engine.install(pipeline)).await?;
        }
        let listener = Listener::bind(&settings.address)
            .await
            .map_err(|error| format!("--grpc-server-addr {}: {error}", settings.address))?;
        match listener.local_address() {
            Some(address) => println!("Server listening on {address}"),
            None => println!("Server listening on {}", settings.address),
        }
        let server_settings = ServerSettings {
            device_id: settings.device_id,
            pipeline: pipeline_config,
        };
        let server = Server::new(server_settings, handle.clone(), from_dataplane, log.clone());
        let metrics = serve_metrics(&settings, &handle, &server).await?;
        let ended = tokio::select! {
            () = metrics => Err("the metrics server has ended".into()),
            served = listener.serve(server.clone(), std::future::pending()) => {
                served.map_err(Into::into)
            }
            ended = wait_for_end(&dataplane, &handle, &server, &settings, &log) => ended,
        };
        report(&handle, &server, &settings, &log).await;
        if let wormcast_switch::p4rt::Address::Unix(path) = &settings.address {
            // Somebody else may have removed it already.
            let _ = fs::remove_file(path);
        }
        dataplane.stop();
        ended
    });
    runtime.shutdown_timeout(GRACE);
    let ended_well = dataplane.join();
    served?;
    if ended_well {
        Ok(())
    } else {
        Err("the data plane ended by a panic".into())
    }
}

/// The traces that run from the start on: that of `--trace`, and the log's.
fn traces(
    settings: &Settings,
    log: &Log,
) -> Result<Vec<(Filter, Box<dyn TraceSink>)>, Box<dyn Error>> {
    let mut traces = Vec::new();
    if let Some(trace) = &settings.trace {
        let sink = match &trace.file {
            None => write_to(std::io::stdout(), trace.format)?,
            Some(path) => {
                let file = fs::File::create(path)
                    .map_err(|error| format!("--trace-file {}: {error}", path.display()))?;
                write_to(BufWriter::new(file), trace.format)?
            }
        };
        traces.push((trace.filter.clone(), sink));
    }
    if log.enabled(Level::Trace) {
        traces.push((Filter::default(), write_to_log(log.clone())?));
    } else if log.enabled(Level::Info) {
        let sink = write_messages_to_log(log.clone())?;
        traces.push((Filter::messages(), sink));
    }
    Ok(traces)
}

/// The server of `--metrics-addr`, to be polled; without one, what never ends.
async fn serve_metrics(
    settings: &Settings,
    handle: &DataplaneHandle,
    server: &Server,
) -> Result<Pin<Box<dyn Future<Output = ()>>>, Box<dyn Error>> {
    let Some(address) = &settings.metrics_address else {
        return Ok(Box::pin(std::future::pending()));
    };
    let requests = server.requests();
    let lost = server.clone();
    let device = Device {
        id: settings.device_id,
        dataplane: handle.clone(),
        undelivered: Arc::new(move || lost.undelivered()),
    };
    let devices: Devices = Arc::new(move || vec![device.clone()]);
    let metrics = MetricsServer::bind(address, devices, requests)
        .await
        .map_err(|error| format!("--metrics-addr {address}: {error}"))?;
    println!("Metrics on http://{}/metrics", metrics.local_address()?);
    Ok(Box::pin(metrics.serve()))
}

fn open_log(settings: &Settings) -> Result<Log, Box<dyn Error>> {
    match &settings.log {
        LogTo::Nowhere => Ok(Log::off()),
        LogTo::Console => Ok(Log::to_console(settings.log_level)),
        LogTo::File(path) => Log::to_file(settings.log_level, path)
            .map_err(|error| format!("--log-file {}: {error}", path.display()).into()),
    }
}

fn load(path: &Path) -> Result<Program, Box<dyn Error>> {
    let json = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    Program::from_json(&json).map_err(|error| format!("{}: {error}", path.display()).into())
}

/// Waits for a signal that ends the switch; `Err` if the data plane ends by itself.
async fn wait_for_end(
    dataplane: &Dataplane,
    handle: &DataplaneHandle,
    server: &Server,
    settings: &Settings,
    log: &Log,
) -> Result<(), Box<dyn Error>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut ask = signal(SignalKind::user_defined1())?;
    let mut watch = tokio::time::interval(WATCH_INTERVAL);
    loop {
        tokio::select! {
            _ = terminate.recv() => return Ok(()),
            _ = interrupt.recv() => return Ok(()),
            _ = ask.recv() => report(handle, server, settings, log).await,
            _ = watch.tick() => {
                if dataplane.has_ended() {
                    return Err("the data plane has ended".into());
                }
            }
        }
    }
}

/// Writes the statistics to the log and to their file.
async fn report(handle: &DataplaneHandle, server: &Server, settings: &Settings, log: &Log) {
    let Ok(counts) = handle.run(|engine| engine.counts()).await else {
        return;
    };
    let mut snapshot = Snapshot::from(counts);
    (
        snapshot.packet_ins_no_primary,
        snapshot.packet_ins_stream_full,
    ) = server.undelivered();
    let json = match serde_json::to_string(&snapshot) {
        Ok(json) => json,
        Err(error) => {
            log.write(Level::Error, format_args!("statistics: {error}"));
            return;
        }
    };
    log.write(Level::Info, format_args!("statistics: {json}"));
    if let Some(path) = &settings.statistics
        && let Err(error) = fs::write(path, json + "\n")
    {
        log.write(Level::Error, format_args!("{}: {error}", path.display()));
        eprintln!("wormcast-switch: {}: {error}", path.display());
    }
}
