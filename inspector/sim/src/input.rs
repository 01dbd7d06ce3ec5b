//! Reads the trace.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use fluxion_scheduler::sim::{SwfTrace, TraceJob, read_csv, read_swf};

use crate::arguments::{Arguments, TraceFormat};
use crate::cluster::Header;
use crate::words::{counted, note};

/// The largest trace, in bytes: ten times the largest of the Parallel Workloads Archive.
const MOST: u64 = 1 << 30;

/// The jobs of the trace that the command line names, and its header.
pub(crate) fn read(arguments: &Arguments) -> Result<(Vec<TraceJob>, Header)> {
    let path = &arguments.trace;
    let name = if path == Path::new("-") { "standard input".to_owned() } else { path.display().to_string() };
    let text = if path == Path::new("-") {
        text(io::stdin().lock(), MOST)
    } else {
        File::open(path).map_err(anyhow::Error::from).and_then(|file| text(file, MOST))
    };
    let text = text.with_context(|| format!("failed to read trace {name}"))?;
    let format = arguments.trace_format.unwrap_or_else(|| match path.extension() {
        Some(extension) if extension.eq_ignore_ascii_case("csv") => TraceFormat::Csv,
        _ => TraceFormat::Swf,
    });
    let (mut jobs, header) = match format {
        TraceFormat::Csv => {
            let jobs = read_csv(&text).with_context(|| format!("failed to parse trace {name} as CSV"))?;
            (jobs, Header::default())
        }
        TraceFormat::Swf => {
            let trace = read_swf(&text).with_context(|| {
                format!("failed to parse trace {name} as SWF (use --trace-format to specify another format)")
            })?;
            tell(&trace);
            let SwfTrace { jobs, max_nodes, max_procs, .. } = trace;
            (jobs, Header { nodes: max_nodes, processors: max_procs })
        }
    };
    if let Some(count) = arguments.jobs {
        jobs.truncate(count);
    }
    ensure!(!jobs.is_empty(), "trace {name} contains no jobs");
    let over = jobs.iter().filter(|job| job.run > job.limit).count();
    if over > 0 {
        let over = counted(over, "job runs beyond its time limit", "jobs run beyond their time limit");
        note(&if arguments.measuring.allow_overruns {
            format!("{over}: simulated to the end")
        } else {
            format!("{over}: ended there (use --allow-overruns to keep the run times)")
        });
    }
    if let Some(factor) = arguments.measuring.load_factor {
        scale(&mut jobs, factor);
    }
    Ok((jobs, header))
}

/// Says what of a trace is not used.
fn tell(trace: &SwfTrace) {
    if trace.skipped > 0 {
        let skipped = counted(trace.skipped, "job without", "jobs without");
        note(&format!("skipped {skipped} run time or processors"));
    }
    if trace.partial > 0 {
        let partial = counted(trace.partial, "line", "lines");
        note(&format!(
            "{partial} for parts of jobs (status 2 to 4): each job is simulated once, without interruption"
        ));
    }
    if trace.partitions > 1 {
        note(&format!("ignored partitions (field 16): the trace has {}", trace.partitions));
    }
    if trace.preceding > 0 {
        let preceding = counted(trace.preceding, "job", "jobs");
        note(&format!(
            "ignored preceding jobs and think times (fields 17 and 18) of {preceding}: submit times are those of the trace"
        ));
    }
}

/// Divides the times between submissions.
#[allow(clippy::cast_possible_truncation, reason = "at most a thousand times a thousand years, in seconds")]
fn scale(jobs: &mut [TraceJob], factor: f64) {
    let Some(first) = jobs.iter().map(|job| job.submit).min() else { return };
    for job in jobs {
        job.submit = first + ((job.submit - first) as f64 / factor).round() as i64;
    }
}

/// The text of a trace of at most so many bytes. What is no UTF-8, as names in remarks of old traces, is replaced.
fn text(from: impl Read, most: u64) -> Result<String> {
    let mut bytes = Vec::new();
    from.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.starts_with(&[0x1f, 0x8b]) {
        bail!(
            "the file is compressed: decompress it with gunzip, or pipe the output of `gunzip -c FILE` to `fluxion-sim -`"
        );
    }
    ensure!(bytes.len() as u64 <= most, "the file is larger than {} MiB: simulate part of it", most >> 20);
    Ok(String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_text_is_refused_or_replaced() {
        assert_eq!(text(&b"; Ma\xeftre\n1"[..], 20).unwrap(), "; Ma\u{fffd}tre\n1");
        assert!(text(&b"\x1f\x8b\x08"[..], 20).unwrap_err().to_string().contains("gunzip"));
        let error = text(io::repeat(0), 2 << 20).unwrap_err().to_string();
        assert!(error.contains("larger than 2 MiB"), "{error}");
    }
}
