//! `FluxionTimeline`: current allocations and planned reservations of nodes.

use fluxion_api::graph::{FluxionTimeline, TimelineSpan};
use fluxion_api::{API_VERSION, ObjectMeta};
use fluxion_scheduler::state::Job;

use super::Visible;
use super::job::placed;
use super::name::full_name;
use super::text::time;

/// Allocations and reservations of the jobs visible to the viewer, sorted by start.
pub fn timeline(visible: &Visible<'_>) -> FluxionTimeline {
    let mut spans: Vec<(i64, TimelineSpan)> = Vec::new();
    for job in
        visible.state.jobs().filter(|job| visible.viewer.sees(&job.key.namespace) && !job.state.ended())
    {
        spans.extend(allocation(visible, job));
        if let Some(planned) = &job.reservation {
            let span = TimelineSpan {
                job: full_name(visible.state, job),
                kind: "reservation".to_owned(),
                start: time(planned.start),
                end: planned.end.map(time),
                nodes: planned.nodes.iter().map(ToString::to_string).collect(),
            };
            spans.push((planned.start, span));
        }
    }
    spans.sort_by(|(start, span), (other_start, other)| (start, &span.job).cmp(&(other_start, &other.job)));
    FluxionTimeline {
        api_version: API_VERSION.to_owned(),
        kind: "FluxionTimeline".to_owned(),
        metadata: ObjectMeta { name: super::LIVE.to_owned(), ..ObjectMeta::default() },
        spans: spans.into_iter().map(|(_, span)| span).collect(),
    }
}

fn allocation(visible: &Visible<'_>, job: &Job) -> Option<(i64, TimelineSpan)> {
    let nodes: Vec<String> = placed(visible.state, job).keys().map(ToString::to_string).collect();
    // A job that is being bound holds its nodes already.
    let start = job.started_at.unwrap_or(job.state_since);
    let span = TimelineSpan {
        job: full_name(visible.state, job),
        kind: "allocation".to_owned(),
        start: time(start),
        end: job.planned_end.map(time),
        nodes,
    };
    (!span.nodes.is_empty()).then_some((start, span))
}
