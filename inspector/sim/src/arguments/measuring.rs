//! What is played and measured, on the command line.

use clap::{Args, ValueEnum};
use fluxion_scheduler::sim::{Cut, GroupBy, Measure};

/// The longest time on the command line, in seconds: a thousand years.
const LONGEST: i64 = 1000 * 366 * 86_400;

/// More seeds than are of use.
const MAX_SEEDS: u64 = 10_000;

/// What is played and measured.
#[derive(Debug, Args)]
pub(crate) struct Measuring {
    /// Let jobs run beyond their time limit, for as long as the trace says [default: end them at the limit]
    #[arg(long)]
    pub(crate) allow_overruns: bool,
    /// Multiply the load by a factor by dividing the times between submissions
    #[arg(long, value_name = "FACTOR", value_parser = factor)]
    pub(crate) load_factor: Option<f64>,
    /// Do not measure jobs submitted in the first SECONDS, or the first N% of the jobs; they are still simulated
    #[arg(long, value_name = "SECONDS|N%", value_parser = cut)]
    warm_up: Option<Cut>,
    /// Do not measure jobs submitted in the last SECONDS before the last submission, or the last N% of the jobs, nor
    /// the time after; 0 cuts only the time in which the queues drain after the last submission
    #[arg(long, value_name = "SECONDS|N%", value_parser = cut)]
    cool_down: Option<Cut>,
    /// Run time in seconds as which shorter run times count in the slowdown
    #[arg(long, value_name = "SECONDS", default_value_t = Measure::default().slowdown_bound,
        value_parser = clap::value_parser!(i64).range(1..=LONGEST))]
    slowdown_bound: i64,
    /// Also compare policies by user, width (number of processors) or queue; can be repeated
    #[arg(long, value_enum)]
    pub(crate) by: Vec<By>,
    /// Also simulate N variants of the trace, with seeds 1 to N, in which every submit time is moved at random, and
    /// print the mean and the 95% confidence interval of the metrics over them
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(2..=MAX_SEEDS))]
    pub(crate) seeds: Option<u64>,
    /// Maximum number of seconds by which --seeds moves submit times, earlier or later
    #[arg(long, value_name = "SECONDS", default_value_t = 60, requires = "seeds",
        value_parser = clap::value_parser!(i64).range(1..=LONGEST))]
    pub(crate) shake: i64,
}

/// What metrics are grouped by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum By {
    User,
    Width,
    Queue,
}

impl By {
    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Width => "width",
            Self::Queue => "queue",
        }
    }
}

impl From<By> for GroupBy {
    fn from(by: By) -> Self {
        match by {
            By::User => Self::User,
            By::Width => Self::Width,
            By::Queue => Self::Queue,
        }
    }
}

impl Measuring {
    /// What results are measured by.
    pub(crate) fn measure(&self) -> Measure {
        Measure {
            slowdown_bound: self.slowdown_bound,
            warm_up: self.warm_up.unwrap_or_default(),
            cool_down: self.cool_down.unwrap_or_default(),
        }
    }
}

fn factor(text: &str) -> Result<f64, String> {
    let factor = text.parse().ok().filter(|factor| (0.001..=1000.0).contains(factor));
    factor.ok_or_else(|| "must be a number between 0.001 and 1000".to_owned())
}

fn cut(text: &str) -> Result<Cut, String> {
    let cut = match text.strip_suffix('%') {
        Some(percent) => percent
            .parse()
            .ok()
            .filter(|percent| (0.0..100.0).contains(percent))
            .map(|percent: f64| Cut::Jobs(percent / 100.0)),
        None => text.parse().ok().filter(|seconds| (0..=LONGEST).contains(seconds)).map(Cut::Seconds),
    };
    cut.ok_or_else(|| "must be a number of seconds, or a percentage below 100%".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_are_seconds_or_shares() {
        assert_eq!(cut("3600"), Ok(Cut::Seconds(3600)));
        assert_eq!(cut("12.5%"), Ok(Cut::Jobs(0.125)));
        for text in ["", "-1", "1h", "%", "100%", "-3%", "NaN%", "99999999999999"] {
            assert!(cut(text).is_err(), "{text}");
        }
        assert!(factor("0").is_err() && factor("nan").is_err() && factor("1.5") == Ok(1.5));
    }
}
