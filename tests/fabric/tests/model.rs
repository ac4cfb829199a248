//! What is said to have a message has it: see `model`.

use wormcast_fabric_tests::model::run;
use wormcast_fabric_tests::trace::Trace;

#[test]
fn the_same_seed_gives_the_same_run() {
    let run = || {
        let trace = Trace::default();
        run(3, &trace);
        trace.text()
    };
    assert_eq!(run(), run());
}
