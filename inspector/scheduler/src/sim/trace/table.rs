//! A simple CSV with a header.

use super::{Names, TraceError, job, not_a_number, number, without_mark, wrong};
use crate::sim::TraceJob;

/// Parses a CSV file with a header containing, in any order, `submit`, `cores`, `run` and optionally `limit` (default:
/// run), `priority` (default: 0), `id` (default: the line number), `queue`, `user`. Times are in seconds; fractions are
/// dropped, and a run time of 0 counts as 1 s. Empty lines and lines starting with `#` are ignored.
pub fn read_csv(text: &str) -> Result<Vec<TraceJob>, TraceError> {
    const NAMES: [&str; 8] = ["submit", "cores", "run", "limit", "priority", "id", "queue", "user"];
    let text = without_mark(text);
    let mut lines = text.lines().enumerate().filter(|(_, line)| {
        let line = line.trim();
        !line.is_empty() && !line.starts_with('#')
    });
    let (index, header) = lines
        .next()
        .ok_or_else(|| wrong(1, "missing header: submit,cores,run[,limit,priority,id,queue,user]"))?;
    let columns: Vec<&str> = header.split(',').map(str::trim).collect();
    if let Some(unknown) = columns.iter().find(|name| !NAMES.contains(name)) {
        return Err(wrong(
            index + 1,
            format!("unknown column `{unknown:.20}`: valid columns are {}", NAMES.join(", ")),
        ));
    }
    if let Some((_, twice)) =
        columns.iter().enumerate().find(|(place, name)| columns[..*place].contains(name))
    {
        return Err(wrong(index + 1, format!("duplicate column {twice}")));
    }
    let places = NAMES.map(|name| columns.iter().position(|column| *column == name));
    if let Some(missing) = NAMES.iter().zip(&places).take(3).find(|(_, place)| place.is_none()) {
        return Err(wrong(index + 1, format!("missing column {}", missing.0)));
    }
    let mut jobs = Vec::new();
    let mut names = Names::default();
    for (index, line) in lines {
        let line_number = index + 1;
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        if fields.len() != columns.len() {
            return Err(wrong(
                line_number,
                format!("line has {} fields, but the header has {} columns", fields.len(), columns.len()),
            ));
        }
        let figure = |which: usize, otherwise: Option<i64>| {
            let text = places[which].map_or("", |place| fields[place]);
            let name = NAMES[which];
            match otherwise {
                Some(otherwise) if text.is_empty() => Ok(otherwise),
                None if text.is_empty() => Err(wrong(line_number, format!("{name} is empty"))),
                _ => number(text).ok_or_else(|| not_a_number(line_number, format_args!("{name}"), text)),
            }
        };
        let id = u64::try_from(figure(5, Some(-1))?).unwrap_or(line_number as u64);
        let figures =
            [figure(0, None)?, figure(1, None)?, figure(2, None)?, figure(3, Some(0))?, figure(4, Some(0))?];
        let mut name = |which: usize| {
            places[which]
                .map(|place| fields[place])
                .filter(|name| !name.is_empty())
                .map(|name| names.get(name))
        };
        let (queue, user) = (name(6), name(7));
        jobs.push(TraceJob { queue, user, ..job(line_number, id, figures)? });
    }
    Ok(jobs)
}
