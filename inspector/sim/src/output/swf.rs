//! A schedule in Standard Workload Format.

use std::collections::HashMap;
use std::fmt::Write as _;

use fluxion_scheduler::sim::{Machine, TraceJob};

use super::PolicyRun;
use super::row::rows;

/// Numbers for names: their own if all are numbers, otherwise in order of appearance, from 1.
struct Numbers<'a> {
    own: bool,
    of: HashMap<&'a str, usize>,
    names: Vec<&'a str>,
}

impl<'a> Numbers<'a> {
    fn new(all: impl Iterator<Item = &'a str>) -> Self {
        let mut numbers = Self { own: true, of: HashMap::new(), names: Vec::new() };
        for name in all {
            if !numbers.of.contains_key(name) {
                numbers.own &= name.parse::<u32>().is_ok();
                numbers.names.push(name);
                numbers.of.insert(name, numbers.names.len());
            }
        }
        numbers
    }

    fn get(&self, name: Option<&str>) -> String {
        match name {
            Some(name) if self.own => name.to_owned(),
            Some(name) => self.of.get(name).map_or("-1".to_owned(), usize::to_string),
            None => "-1".to_owned(),
        }
    }

    fn remarks(&self, what: &str) -> String {
        let numbered =
            |(number, name): (usize, &&str)| format!("; {what}: {number} {}\n", fluxion_text::clean(name));
        if self.own { String::new() } else { (1..).zip(&self.names).map(numbered).collect() }
    }
}

/// The schedule of a policy in Standard Workload Format. Jobs that ran have status 1, or 0 if ended at their limit;
/// jobs that can never run have status 5.
pub(crate) fn swf(machine: Machine, trace: &[TraceJob], result: &PolicyRun) -> String {
    let queues = Numbers::new(trace.iter().filter_map(|job| job.queue.as_deref()));
    let users = Numbers::new(trace.iter().filter_map(|job| job.user.as_deref()));
    let processors = u64::from(machine.nodes) * u64::from(machine.cores);
    let mut text = format!(
        "; Version: 2.2\n; MaxJobs: {jobs}\n; MaxRecords: {jobs}\n; MaxNodes: {}\n; MaxProcs: {processors}\n\
         ; Note: schedule simulated by fluxion-sim with policy {}{}\n{}{}",
        machine.nodes,
        result.name,
        result.planning.map_or(String::new(), |planning| format!(", planning {planning}")),
        queues.remarks("Queue"),
        users.remarks("Note: user"),
        jobs = trace.len(),
    );
    for (job, row) in trace.iter().zip(rows(machine, trace, &result.outcome)) {
        let status = match row.run {
            None => 5,
            Some(run) if run < job.run => 0,
            Some(_) => 1,
        };
        let allocated = row.allocated.map_or("-1".to_owned(), |count| count.to_string());
        let _ = writeln!(
            text,
            "{} {} {} {} {allocated} -1 -1 {} {} -1 {status} {} -1 -1 {} -1 -1 -1",
            row.id,
            row.submit,
            row.wait.unwrap_or(-1),
            row.run.unwrap_or(-1),
            row.processors,
            row.limit,
            users.get(row.user),
            queues.get(row.queue),
        );
    }
    text.truncate(text.trim_end().len());
    text
}
