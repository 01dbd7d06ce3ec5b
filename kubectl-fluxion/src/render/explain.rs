//! Output of `explain`, similar to `kubectl describe`.

use fluxion_api::{FluxionExplanation, FluxionJob, JobState, Preference};
use fluxion_text::{clean, hostlist};

use super::Options;
use super::jobs::{members, name_some, planned_start, request, state_style};
use super::style::{BAD, BOLD, DIM, WARN};
use super::time::{ago, clock, localised, parse, short, until};

/// Maximum number of nodes listed.
const MOST_NODES: usize = 20;
/// Maximum number of history entries shown; older entries are omitted.
const MOST_HISTORY: usize = 15;

/// Renders an explanation.
pub fn explain(answer: &FluxionExplanation, options: &Options) -> String {
    let job = &answer.job;
    let mut out = Page { text: String::new(), options };
    out.head(job);
    out.why(answer);
    out.place(job);
    out.preferences(&answer.preferences);
    out.waits(job);
    out.list("What would help", &answer.suggestions);
    out.warnings(job);
    out.history(job);
    out.text
}

/// Planned duration and time limit.
fn duration(job: &FluxionJob) -> String {
    match (job.spec.duration_seconds, job.spec.limit_seconds) {
        (None, None) => "no time limit".to_owned(),
        (Some(planned), None) => format!("planned duration {} (not enforced)", short(planned)),
        (Some(planned), Some(limit)) if planned != limit => {
            format!(
                "planned duration {}, time limit {} (activeDeadlineSeconds)",
                short(planned),
                short(limit)
            )
        }
        (_, Some(limit)) => format!("time limit {} (activeDeadlineSeconds)", short(limit)),
    }
}

struct Page<'a> {
    text: String,
    options: &'a Options,
}

impl Page<'_> {
    fn head(&mut self, job: &FluxionJob) {
        let status = &job.status;
        let style = state_style(&status.state);
        let since = ago(Some(&status.state_since), self.options.now);
        put!(
            self.text,
            "{BOLD}Job:{BOLD:#} {}\n{BOLD}State:{BOLD:#} {style}{}{style:#}",
            clean(&job.reference().to_string()),
            clean(status.state.as_str())
        );
        if since != "-" {
            put!(self.text, " for {since}");
        }
        if status.degraded {
            put!(self.text, " {WARN}(degraded){WARN:#}");
        }
        self.text.push('\n');
        let duration = duration(job);
        let request = match request(job, true).as_str() {
            "-" => "no resource requests".to_owned(),
            some => format!("requesting {}", clean(some)),
        };
        // The count is that of the attempt; a controller may have made Pods before.
        let counted = if job.has_ended() { status.members.bound } else { 0 };
        let earlier = match status.members.ended.saturating_sub(counted) {
            0 => String::new(),
            ended if !job.has_ended() => format!(" ({ended} finished)"),
            before => format!(" ({before} more in earlier attempts)"),
        };
        let place = status.position.map_or_else(String::new, |place| format!(", position {place}"));
        putln!(
            self.text,
            "{BOLD}Members:{BOLD:#} {}{earlier}, {request}, {duration}\n{BOLD}Queue:{BOLD:#} {}{place}, priority {}",
            members(job),
            clean(&job.spec.queue),
            job.spec.priority
        );
        if let Some(topology) = &job.spec.topology {
            putln!(self.text, "{BOLD}Topology:{BOLD:#} all members in one {}", clean(topology));
        }
    }

    fn why(&mut self, answer: &FluxionExplanation) {
        let status = &answer.job.status;
        if let Some(reason) = &status.reason {
            putln!(
                self.text,
                "\n{BOLD}Reason:{BOLD:#} {} {DIM}[{}]{DIM:#}",
                self.said(&reason.line()),
                clean(reason.class.as_str())
            );
            // The table of nodes below says the same with more to it.
            if answer.nodes.is_empty() {
                for detail in reason.details(&|time| self.clock(time)) {
                    putln!(self.text, "  - {}", self.said(&detail));
                }
            }
        }
        if status.members.gated > 0 {
            putln!(
                self.text,
                "  Pods blocked by scheduling gates, not counted as members yet: {}",
                status.members.gated
            );
        }
        if !answer.nodes.is_empty() {
            let total: u32 = answer.nodes.iter().fold(0, |sum, left_out| sum.saturating_add(left_out.count));
            let (nodes, are) = if total == 1 { ("node", "is") } else { ("nodes", "are") };
            putln!(self.text, "  {total} {nodes} {are} not available:");
            for left_out in &answer.nodes {
                let detail = left_out.detail(&|time| self.clock(time));
                putln!(self.text, "  {:>7}  {}", left_out.count, clean(&detail));
            }
        }
        if let Some(nearest) = &answer.nearest {
            putln!(self.text, "  Closest match: {}", self.said(nearest));
        }
    }

    /// Where the job runs or is planned to run.
    fn place(&mut self, job: &FluxionJob) {
        let status = &job.status;
        let now = self.options.now;
        if let Some(allocation) = status.allocation.as_ref().filter(|allocation| !allocation.nodes.is_empty())
        {
            self.title(if job.has_ended() { "Ran on" } else { "Running on" });
            for node in allocation.nodes.iter().take(MOST_NODES) {
                putln!(
                    self.text,
                    "  {}  {DIM}{}{DIM:#}",
                    clean(&node.name),
                    clean(&name_some(&node.pods, 8))
                );
            }
            if allocation.nodes.len() > MOST_NODES {
                putln!(self.text, "  and {} more nodes", allocation.nodes.len() - MOST_NODES);
            }
            if job.has_ended() {
                self.ran(job);
            } else if let Some(end) = &status.planned_end {
                let left = until(Some(end), now);
                let at = clock(end, now, &self.options.zone);
                if left == "now" {
                    let over = ago(Some(end), now);
                    putln!(
                        self.text,
                        "  {WARN}planned to end at {at}, overdue by {over}; its nodes are still allocated{WARN:#}"
                    );
                } else {
                    let ends = if job.spec.limit_seconds.is_some() { "ends by" } else { "planned to end at" };
                    putln!(self.text, "  {ends} {at} (in {left})");
                }
            } else {
                putln!(self.text, "  no time limit: end unknown");
            }
        } else if let Some(start) = planned_start(job).filter(|_| job.is_queued()) {
            self.title("Planned start");
            let left = match until(Some(start), now).as_str() {
                "now" => "due now".to_owned(),
                left => format!("in {left}"),
            };
            let assumed = if status.planned_start_assumed { ", assumed" } else { "" };
            put!(self.text, "  {} ({left}{assumed})", clock(start, now, &self.options.zone));
            if let Some(reservation) = status.reservation.as_ref().filter(|it| !it.nodes.is_empty()) {
                putln!(self.text, " on {}", clean(&hostlist(&reservation.nodes, 12)));
            } else {
                putln!(self.text, "; estimate only, no nodes are reserved");
            }
        } else if matches!(status.state, JobState::Pending | JobState::Reserved) {
            self.title("Planned start");
            putln!(self.text, "  no estimate available");
        }
    }

    /// Which preferences its nodes meet.
    fn preferences(&mut self, preferences: &[Preference]) {
        if preferences.is_empty() {
            return;
        }
        self.title("Preferences");
        for preference in preferences {
            let met = match preference.met {
                None => format!("{} members", preference.members),
                Some(met) if met == preference.members => "met".to_owned(),
                Some(0) => "not met".to_owned(),
                Some(met) => format!("met for {met} of {} members", preference.members),
            };
            let text = clean(&preference.text);
            putln!(self.text, "  {text}: {met}  {DIM}weight {}{DIM:#}", preference.weight);
        }
    }

    /// When and for how long the job ran.
    fn ran(&mut self, job: &FluxionJob) {
        let (Some(start), Some(end)) = (&job.status.started_at, &job.status.ended_at) else { return };
        let zone = &self.options.zone;
        let (from, to) = (clock(start, self.options.now, zone), clock(end, self.options.now, zone));
        let length = parse(end).map_or_else(|| "-".to_owned(), |end| ago(Some(start), end));
        putln!(self.text, "  from {} to {} ({length})", clean(&from), clean(&to));
    }

    fn waits(&mut self, job: &FluxionJob) {
        if job.status.waits_for.is_empty() {
            return;
        }
        self.title("Waiting for");
        for other in job.status.waits_for.iter().take(20) {
            let until = other.until.as_deref().map_or_else(
                || "no planned end".to_owned(),
                |end| match until(Some(end), self.options.now).as_str() {
                    left if other.assumed => {
                        let at = clock(end, self.options.now, &self.options.zone);
                        format!("assumed to end at {at} (in {left})")
                    }
                    "now" => {
                        format!("was planned to end at {}", clock(end, self.options.now, &self.options.zone))
                    }
                    left => {
                        format!("ends by {} (in {left})", clock(end, self.options.now, &self.options.zone))
                    }
                },
            );
            putln!(self.text, "  {}  {DIM}{until}{DIM:#}", clean(&other.job));
        }
        if job.status.waits_for.len() > 20 {
            putln!(self.text, "  and {} more", job.status.waits_for.len() - 20);
        }
    }

    fn list(&mut self, title: &str, items: &[String]) {
        if items.is_empty() {
            return;
        }
        self.title(title);
        for item in items {
            putln!(self.text, "  - {}", self.said(item));
        }
    }

    fn warnings(&mut self, job: &FluxionJob) {
        for (place, warning) in job.status.warnings.iter().enumerate() {
            let gap = if place == 0 { "\n" } else { "" };
            putln!(self.text, "{gap}{BAD}Warning:{BAD:#} {}", self.said(warning));
        }
    }

    fn history(&mut self, job: &FluxionJob) {
        let history = &job.status.history;
        if history.is_empty() {
            return;
        }
        self.title("History");
        if history.len() > MOST_HISTORY {
            putln!(self.text, "  {DIM}… {} earlier entries{DIM:#}", history.len() - MOST_HISTORY);
        }
        for entry in &history[history.len().saturating_sub(MOST_HISTORY)..] {
            let style = state_style(&entry.state);
            let state = clean(entry.state.as_str());
            put!(
                self.text,
                "  {DIM}{}{DIM:#}  {style}{state}{style:#}",
                clean(&clock(&entry.time, self.options.now, &self.options.zone))
            );
            if !entry.reason.is_empty() {
                let gap = 14_usize.saturating_sub(state.chars().count()).max(2);
                put!(self.text, "{:gap$}{}", "", self.said(&entry.reason));
            }
            self.text.push('\n');
        }
    }

    /// A message of the server, with its times in the user's time zone.
    fn said(&self, text: &str) -> String {
        localised(&clean(text), self.options.now, &self.options.zone)
    }

    fn clock(&self, time: &str) -> String {
        clock(time, self.options.now, &self.options.zone)
    }

    fn title(&mut self, title: &str) {
        putln!(self.text, "\n{BOLD}{title}:{BOLD:#}");
    }
}
