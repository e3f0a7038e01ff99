//! Replication without sockets, threads or a clock: real logs on simulated disks, the leader's and the follower's real
//! machines, and everything between them made up by a seed.
//!
//! `PYLOG_SIM_SEEDS` sets the number of seeds, `PYLOG_SEED` the first; a failure prints its seed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
mod node;
mod scripts;
mod sim;
mod store;

use sim::{Sim, Stats, Weather};

use pylog_testkit::runs::{is_long, number};

/// Seeds of each weather where `PYLOG_SIM_SEEDS` says nothing; in a long run (`make test-long`) more.
const DEFAULT_SEEDS: u64 = 40;
const LONG_SEEDS: u64 = 400;

/// All seeds in one weather; the figures of all.
fn seeds(weather: Weather) -> Stats {
    let first = number("PYLOG_SEED", 1);
    let mut total = Stats::default();
    let default = if is_long() { LONG_SEEDS } else { DEFAULT_SEEDS };
    for seed in first..first + number("PYLOG_SIM_SEEDS", default) {
        total.add(&Sim::new(seed, weather).run());
    }
    println!("{weather:?}: {total:?}");
    let Stats { runs, elections, isr_changes, truncations, dropped, doubled, committed, uncommitted, .. } =
        total;
    if runs >= DEFAULT_SEEDS {
        for bit in [elections, isr_changes, truncations, dropped, doubled, committed, uncommitted] {
            assert!(bit >= runs, "the faults did not bite: {total:?}");
        }
    }
    total
}

#[test]
fn nothing_committed_is_lost_when_processes_die_pause_and_are_cut_off() {
    let total = seeds(Weather::Kills);
    assert!(total.kills >= total.runs, "{total:?}");
}

#[test]
fn nothing_committed_is_lost_when_machines_lose_power_one_after_the_other() {
    let total = seeds(Weather::PowerOfOne);
    assert!(total.power_cuts >= total.runs && total.bites >= total.runs, "{total:?}");
}

#[test]
fn nothing_committed_is_lost_when_any_machine_loses_power_and_records_are_flushed() {
    let total = seeds(Weather::FlushedPower);
    assert!(total.power_cuts >= total.runs && total.bites >= total.runs, "{total:?}");
}
