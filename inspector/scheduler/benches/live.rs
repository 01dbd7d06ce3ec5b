//! What an event costs an engine that goes on: 5,000 full nodes, and 10,000 gangs of 500 different requests that wait.
//! Each step is taken with all passes that follow from it, after a snapshot was made, as for readers.
//!
//! `cargo bench -p fluxion-scheduler --bench live -- easy 10000` runs it for one policy (fcfs, easy, hybrid or
//! conservative; by default, for all but conservative) and a number of gangs.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod clock;
mod cluster;

use clock::measure;
use cluster::{GANGS, NODES, NOW, amounts, full, pod, settled, waiting};
use fluxion_scheduler::event::Event;
use fluxion_scheduler::queue::{QueueConfig, QueuePolicy};
use fluxion_scheduler::state::{Settings, State};

/// Number of events of each kind.
const EVENTS: usize = 40;

/// An engine, its last snapshot, and its time.
struct Live {
    state: State,
    snapshot: State,
    now: i64,
}

impl Live {
    fn step(&mut self, events: Vec<Event>) {
        self.state.step(self.now, events);
        let state = std::mem::replace(&mut self.state, State::new(Settings::default()));
        self.state = settled(state, self.now);
    }

    /// Measures one event after the other, a second apart.
    fn each(&mut self, name: &str, mut event: impl FnMut(u64) -> Event) {
        let mut number = 0;
        let mut next = || {
            number += 1;
            event(number)
        };
        let run = |next: &mut Option<Event>| {
            let event = next.take();
            self.now += 1;
            self.step(event.into_iter().collect());
            self.snapshot = self.state.clone();
        };
        measure(name, EVENTS, || Some(next()), run);
    }
}

fn run(name: &str, policy: QueuePolicy, gangs: u64) {
    println!("{name}, {gangs} gangs");
    let queues = vec![QueueConfig { policy, ..QueueConfig::default() }];
    let state = full(Settings { queues, ..Settings::default() });
    let mut live = Live { snapshot: state.clone(), state, now: NOW };
    let mut events = waiting(gangs);
    measure("all arrive", 1, || std::mem::take(&mut events), |events| live.step(std::mem::take(events)));
    live.snapshot = live.state.clone();
    live.each("nothing happens", |_| Event::Tick);
    live.each("a Pod comes", |at| {
        Event::Pod(Box::new(pod(&format!("more-{at}"), amounts(4_000 + 1_000 * (at % 5), 0), Some(5_000))))
    });
    live.each("a waiting Pod is deleted", |at| Event::PodGone(format!("uid-more-{at}").into()));
    live.each("a Pod ends, too little for most", |at| Event::PodGone(format!("uid-small-{at}").into()));
    live.each("a Pod ends, and some start", |at| {
        Event::PodGone(format!("uid-busy-{}", NODES - 1 - 37 * at).into())
    });
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let gangs = arguments.iter().find_map(|argument| argument.parse().ok()).unwrap_or(GANGS);
    let policies = [
        ("fcfs", QueuePolicy::Fcfs),
        ("easy", QueuePolicy::Easy),
        ("hybrid", QueuePolicy::Hybrid),
        ("conservative", QueuePolicy::Conservative),
    ];
    let named = |name: &str| arguments.iter().any(|argument| argument == name);
    let some = policies.iter().any(|(name, _)| named(name));
    for (name, policy) in policies {
        if named(name) || (!some && policy != QueuePolicy::Conservative) {
            run(name, policy, gangs);
        }
    }
}
