//! The Thrift server: connections, and calls handed to the data plane.

use std::io::{self, BufReader, Write};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;

use super::context::{Context, Identity, State};
use super::interface::answer;
use super::wire::{Message, MessageKind, WireError};
use crate::notifications::Notifier;
use wormcast_switch_dataplane::DataplaneHandle;
use wormcast_switch_dataplane::log::{Level, Log};

/// Connections at a time; more are closed at once.
pub const CONNECTIONS_MAX: usize = 64;

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 64;

/// How long the server waits when the system has no connection for it.
const PAUSE: Duration = Duration::from_millis(50);

/// How long a client may leave an answer unread.
const WRITE_PATIENCE: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub struct ThriftServer {
    listener: TcpListener,
    address: SocketAddr,
    notifier: Option<Arc<Notifier>>,
}

impl ThriftServer {
    /// Listens on a TCP port of this address; port 0 is any that is free.
    ///
    /// # Errors
    /// Those of the system; the port may be taken.
    pub fn bind(address: IpAddr, port: u16) -> io::Result<Self> {
        let listener = listen(SocketAddr::from((address, port)))?;
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener.into())?;
        let address = listener.local_addr()?;
        Ok(Self {
            listener,
            address,
            notifier: None,
        })
    }

    /// The same, with who publishes what is learned.
    pub fn notifying(self, notifier: Option<Arc<Notifier>>) -> Self {
        Self { notifier, ..self }
    }

    /// The port it listens on.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Serves until the runtime ends. Calls of one connection are carried out one after
    /// another, each between two batches of packets.
    pub async fn serve(self, identity: Identity, dataplane: DataplaneHandle, log: Log) {
        let mut state = State::new(identity);
        state.notifier = self.notifier;
        let state = Arc::new(Mutex::new(state));
        let open = Arc::new(AtomicUsize::new(0));
        loop {
            let stream = match self.listener.accept().await {
                Ok((stream, _)) => stream,
                Err(error) => {
                    log.write(Level::Warn, format_args!("thrift: {error}"));
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
            };
            if open.load(Ordering::Acquire) >= CONNECTIONS_MAX {
                let text = format_args!("thrift: a connection beyond {CONNECTIONS_MAX} is closed");
                log.write(Level::Warn, text);
                continue;
            }
            open.fetch_add(1, Ordering::AcqRel);
            let connection = Connection {
                state: Arc::clone(&state),
                dataplane: dataplane.clone(),
                log: log.clone(),
                runtime: Handle::current(),
            };
            let open = Arc::clone(&open);
            tokio::task::spawn_blocking(move || {
                if let Err(error) = connection.serve(stream) {
                    let text = format_args!("thrift: a connection is closed: {error}");
                    connection.log.write(Level::Warn, text);
                }
                open.fetch_sub(1, Ordering::AcqRel);
            });
        }
    }
}

fn listen(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    if address.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket)
}

struct Connection {
    state: Arc<Mutex<State>>,
    dataplane: DataplaneHandle,
    log: Log,
    runtime: Handle,
}

impl Connection {
    fn serve(&self, stream: TcpStream) -> Result<(), WireError> {
        let mut stream = stream.into_std()?;
        stream.set_nonblocking(false)?;
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(WRITE_PATIENCE))?;
        let mut input = BufReader::new(stream.try_clone()?);
        loop {
            let call = match Message::read(&mut input) {
                Ok(call) => call,
                Err(WireError::Closed) => return Ok(()),
                Err(error) => return Err(error),
            };
            let is_answered = call.kind != MessageKind::Oneway;
            let state = Arc::clone(&self.state);
            let carried_out = self.runtime.block_on(self.dataplane.run(move |switch| {
                let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
                let mut context = Context {
                    switch,
                    state: &mut state,
                };
                answer(&mut context, call)
            }));
            let Ok((answer, why)) = carried_out else {
                return Ok(()); // the switch ends
            };
            if let Some(why) = why {
                self.log.write(Level::Warn, format_args!("thrift: {why}"));
            }
            if is_answered {
                stream.write_all(&answer.to_bytes())?;
            }
        }
    }
}
