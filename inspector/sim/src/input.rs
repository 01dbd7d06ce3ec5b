//! Reads the trace.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use fluxion_scheduler::sim::{TraceJob, read_csv, read_swf};

use crate::arguments::{Arguments, TraceFormat};
use crate::words::{counted, note};

/// The largest trace, in bytes: ten times the largest of the Parallel Workloads Archive.
const MOST: u64 = 1 << 30;

/// The jobs of the trace that the command line names.
pub(crate) fn read(arguments: &Arguments) -> Result<Vec<TraceJob>> {
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
    let mut jobs = match format {
        TraceFormat::Csv => {
            read_csv(&text).with_context(|| format!("failed to parse trace {name} as CSV"))?
        }
        TraceFormat::Swf => {
            let (jobs, left_out) = read_swf(&text).with_context(|| {
                format!("failed to parse trace {name} as SWF (use --trace-format to specify another format)")
            })?;
            if left_out > 0 {
                let left_out = counted(left_out, "job without", "jobs without");
                note(&format!("skipped {left_out} run time or processors"));
            }
            jobs
        }
    };
    if let Some(count) = arguments.jobs {
        jobs.truncate(count);
    }
    ensure!(!jobs.is_empty(), "trace {name} contains no jobs");
    Ok(jobs)
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
