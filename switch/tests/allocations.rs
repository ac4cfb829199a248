//! A packet that is forwarded allocates nothing, once buffers have grown.

mod worms;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;

use wormcast_switch_jit::compiler_of;
use wormcast_switch_pipeline::LoadedProgram;
use wormcast_switch_pipeline::{DequeueInfo, Execution, Pipeline, PipelineConfig, PortId};
use worms::{Sink, insert, set_up, worm};

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// The allocator of the system; counts what each thread asks it for.
struct Counting;

// SAFETY: everything is passed on to the allocator of the system as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // A thread that ends has no count any more.
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller keeps the contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller keeps the contract.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn pipeline(path: &str, execution: Execution) -> Pipeline {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let program = LoadedProgram::from_json(&text).unwrap_or_else(|error| panic!("{error}"));
    let config = PipelineConfig {
        compiler: compiler_of(execution),
        ..PipelineConfig::default()
    };
    Pipeline::new(Arc::new(program), config)
}

/// Allocations of so many packets.
fn allocations(pipeline: &mut Pipeline, sink: &mut Sink, packet: &[u8], packets: u64) -> u64 {
    let before = ALLOCATIONS.get();
    for now_us in 0..packets {
        pipeline.ingress(packet, PortId(0), now_us, sink);
        while let Some(queued) = sink.queue.pop_front() {
            pipeline.egress(queued, &DequeueInfo::default(), sink);
        }
    }
    ALLOCATIONS.get() - before
}

#[test]
fn forwarded_packets_allocate_nothing() {
    let tree: Vec<u8> = (1..8).flat_map(|port| [port, 0]).chain([0xff]).collect();
    let mut frame = vec![2, 0, 0, 0, 0, 7, 2, 0, 0, 0, 0, 1, 0x08, 0x00];
    frame.resize(64, 0xa5);
    let worms = "p4src/compiled/wormcast.json";
    let cases = [
        ("switch/bench/programs/l2.json", frame, 1),
        (worms, worm(0, &[5, 3, 1], 64), 1),
        (worms, worm(1, &tree, 256), 7),
    ];
    assert!(ALLOCATIONS.get() > 0, "nothing is counted");
    for execution in [Execution::Compiled, Execution::Interpreted] {
        for (program, packet, copies) in &cases {
            for passes in [true, false] {
                let mut pipeline = pipeline(program, execution);
                if *program == worms {
                    set_up(&mut pipeline);
                } else {
                    let (table, action) = ("ingress.addresses", "ingress.forward");
                    insert(&mut pipeline, table, action, 0x0200_0000_0007, &[5]);
                }
                let mut sink = Sink {
                    passes,
                    ..Sink::default()
                };
                allocations(&mut pipeline, &mut sink, packet, 10);
                let later = allocations(&mut pipeline, &mut sink, packet, 1_000);
                assert_eq!(later, 0, "{program}, {execution:?}, passes: {passes}");
                assert_eq!(sink.frames, 1_010 * copies, "{:?}", pipeline.statistics());
            }
        }
    }
}
