//! A sink that hands records to another thread or task.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::mpsc;

use wormcast_switch_pipeline::trace::{Delivery, TraceRecord, TraceSink};

/// Records that wait for their reader; more are lost and counted.
pub const RECORDS_MAX: usize = 256;

#[derive(Debug)]
struct ChannelSink {
    records: mpsc::Sender<Arc<TraceRecord>>,
    lost: Arc<AtomicU64>,
}

impl TraceSink for ChannelSink {
    fn record(&mut self, record: &Arc<TraceRecord>) -> Delivery {
        match self.records.try_send(Arc::clone(record)) {
            Ok(()) => Delivery::Taken,
            Err(mpsc::error::TrySendError::Full(_)) => {
                self.lost.fetch_add(1, Ordering::Relaxed);
                Delivery::Lost
            }
            Err(mpsc::error::TrySendError::Closed(_)) => Delivery::Closed,
        }
    }

    fn is_open(&self) -> bool {
        !self.records.is_closed()
    }
}

#[derive(Debug)]
pub struct TraceReader {
    records: mpsc::Receiver<Arc<TraceRecord>>,
    lost: Arc<AtomicU64>,
}

impl TraceReader {
    /// The next record and how many were lost before it was made, since the one before;
    /// `None` when the trace has ended.
    pub async fn read(&mut self) -> Option<(Arc<TraceRecord>, u64)> {
        let record = self.records.recv().await?;
        Some((record, self.lost.swap(0, Ordering::Relaxed)))
    }

    /// The same, for a thread that may wait.
    pub fn blocking_read(&mut self) -> Option<(Arc<TraceRecord>, u64)> {
        let record = self.records.blocking_recv()?;
        Some((record, self.lost.swap(0, Ordering::Relaxed)))
    }
}

/// A sink and its reader, with room for `records` between them.
pub fn trace_channel(records: usize) -> (Box<dyn TraceSink>, TraceReader) {
    let (sender, receiver) = mpsc::channel(records);
    let lost = Arc::new(AtomicU64::new(0));
    let sink = ChannelSink {
        records: sender,
        lost: Arc::clone(&lost),
    };
    let reader = TraceReader {
        records: receiver,
        lost,
    };
    (Box::new(sink), reader)
}
