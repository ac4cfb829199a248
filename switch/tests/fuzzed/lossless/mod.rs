//! Losing nothing: pause frames, the accounts of one switch, and small fabrics in which
//! hosts honour pauses.
//!
//! Input: what is looked at, then its settings and steps.

mod accounts;
mod fabrics;

use super::draws::Draws;
use wormcast_switch_flow::BitRate;
use wormcast_switch_flow::frame::{PAUSE_FRAME_BYTES, is_mac_control};
use wormcast_switch_flow::{LosslessSettings, PauseFrame, PauseMode};

pub fn run(data: &[u8]) {
    let mut draws = Draws::new(data);
    match draws.byte() % 8 {
        0 => frame(draws.rest()),
        1..=5 => accounts::run(&mut draws),
        _ => fabrics::run(&mut draws),
    }
}

/// What is read of a frame is read again of the frame that says so.
fn frame(bytes: &[u8]) {
    let Ok(pause) = PauseFrame::parse(bytes) else {
        return;
    };
    let written = pause.to_bytes([2, 0, 0, 0, 0, 1]);
    assert!(is_mac_control(&written) && written.len() == PAUSE_FRAME_BYTES);
    assert_eq!(PauseFrame::parse(&written), Ok(pause));
}

fn rate(draws: &mut Draws<'_>, rates: &[&str]) -> BitRate {
    rates[draws.below(rates.len())].parse().expect("a rate")
}

/// Settings both parts have.
fn settings(draws: &mut Draws<'_>, rates: &[&str]) -> LosslessSettings {
    let mut settings = LosslessSettings {
        response_us: Some(100),
        watchdog: None,
        ..LosslessSettings::default()
    };
    settings.link.rate = rate(draws, rates);
    if draws.one_in(4) {
        settings.pause = PauseMode::Pause;
    }
    settings
}

pub fn seeds() -> Vec<Vec<u8>> {
    let mut quanta = [0; 8];
    quanta[3] = 7;
    let pause = PauseFrame::Pause { quanta: 9 }.to_bytes([0; 6]);
    let pfc = PauseFrame::Pfc {
        priorities: [3, 4].into_iter().collect(),
        quanta,
    };
    let mut seeds = vec![
        [&[0][..], &pause].concat(),
        [&[0][..], &pfc.to_bytes([0; 6])].concat(),
    ];
    for kind in [1, 6] {
        for byte in [0, 1, 5, 77, 130, 255] {
            seeds.push([&[kind][..], &[byte; 40]].concat());
        }
        seeds.push(
            (0..200)
                .map(|at: u8| if at == 0 { kind } else { at.wrapping_mul(37) })
                .collect(),
        );
    }
    seeds
}
