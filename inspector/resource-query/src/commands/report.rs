//! The commands list, info, stat and cat. All print to standard output.

use crate::numbers::general;
use crate::options::leading_number;
use crate::session::Session;

/// `list`
pub(super) fn list(session: &mut Session<'_>, _: &[&str]) {
    let lines: String = session.jobs.iter().map(|(id, job)| job.line(*id)).collect();
    session.output.print(&lines);
}

/// `info JOBID`
pub(super) fn info(session: &mut Session<'_>, words: &[&str]) {
    let number = leading_number(words[1]);
    let id = number.cast_unsigned();
    match session.jobs.get(&id).map(|job| job.line(id)) {
        Some(line) => session.output.print(&line),
        None => session.output.error(&format!("info: ERROR: nonexistent job {number}\n")),
    }
}

/// `stat`
pub(super) fn stat(session: &mut Session<'_>, _: &[&str]) {
    let count = session.jobs.len();
    let (min, average) =
        if count == 0 { (0.0, 0.0) } else { (session.times.min, session.times.sum / count as f64) };
    let lines = format!(
        "INFO: Num. of Jobs Matched: {count}\nINFO: Min. Match Time: {}\nINFO: Max. Match Time: {}\nINFO: Avg. Match Time: {}\n",
        general(min),
        general(session.times.max),
        general(average)
    );
    session.output.print(&lines);
}

/// `cat FILE`
pub(super) fn cat(session: &mut Session<'_>, words: &[&str]) {
    if let Some(bytes) = session.read_file(words[1]) {
        let mut text = String::from_utf8_lossy(&bytes).into_owned();
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        session.output.print(&text);
    }
    session.output.print(&format!("INFO: Jobspec in {}\n", words[1]));
}
