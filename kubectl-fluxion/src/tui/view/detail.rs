//! Details of a job or node.

use std::collections::BTreeMap;

use fluxion_api::{FluxionExplanation, FluxionJob, FluxionNode};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::{Block, Paragraph, Wrap};

use super::theme::Theme;
use crate::render::{self, Options, amount_of, clean};
use crate::tui::app::Pane;
use crate::tui::message::Key;

/// Data sources of the details.
#[derive(Clone, Copy)]
pub(super) struct Known<'a> {
    pub(super) jobs: &'a BTreeMap<Key, FluxionJob>,
    pub(super) nodes: &'a BTreeMap<Key, FluxionNode>,
    pub(super) explained: Option<&'a (Key, Box<FluxionExplanation>)>,
}

/// The detail lines of an object.
pub(super) fn lines(
    known: Known<'_>,
    pane: Pane,
    key: &Key,
    now: Timestamp,
    zone: &TimeZone,
) -> Vec<Line<'static>> {
    let text = match pane {
        Pane::Nodes => known.nodes.get(key).map(node),
        _ => known.jobs.get(key).map(|job| {
            // What the server explained is kept with the job as it is now, which may be newer.
            let mut answer = match known.explained {
                Some((explained, answer)) if explained == key => (**answer).clone(),
                _ => FluxionExplanation::default(),
            };
            let same = answer.job.metadata.uid == job.metadata.uid;
            if !same || answer.job.status.state != job.status.state {
                answer = FluxionExplanation::default();
            }
            answer.job = job.clone();
            anstream::adapter::strip_str(&render::explain(
                &answer,
                &Options { zone: zone.clone(), ..Options::plain(now) },
            ))
            .to_string()
        }),
    };
    let text = text.unwrap_or_else(|| "the object no longer exists\n".to_owned());
    text.lines().map(|line| Line::raw(line.to_owned())).collect()
}

fn node(node: &FluxionNode) -> String {
    let status = &node.status;
    let mut text = String::new();
    let ready = if status.eligible {
        "schedulable".to_owned()
    } else {
        format!("not schedulable: {}", clean(&status.reasons.join(", ")))
    };
    putln!(text, "Node: {}\nStatus: {ready}", clean(&node.metadata.name));
    for (key, domain) in &status.levels {
        putln!(text, "  {}={}", clean(key), clean(domain));
    }
    putln!(
        text,
        "\n{:<24} {:>11} {:>9} {:>9} {:>9} {:>9}",
        "RESOURCE",
        "ALLOCATABLE",
        "ALLOCATED",
        "OTHERS",
        "RESERVED",
        "FREE"
    );
    for name in status.allocatable.keys() {
        let show = |from: &fluxion_api::Quantities| amount_of(from, name).shown(name);
        putln!(
            text,
            "{:<24} {:>11} {:>9} {:>9} {:>9} {:>9}",
            clean(name),
            show(&status.allocatable),
            show(&status.allocated),
            show(&status.foreign),
            show(&status.reserved),
            show(&status.free)
        );
    }
    if !status.deficit.is_empty() {
        putln!(text, "\nOvercommitted: {}", clean(&render::amounts(&status.deficit)));
    }
    if !status.jobs.is_empty() {
        putln!(text, "\nJobs on this node:");
        for job in &status.jobs {
            putln!(text, "  {}", clean(job));
        }
    }
    text
}

/// Draws the part of the details that fits in a small pane.
pub(super) fn part(frame: &mut Frame, area: Rect, lines: Vec<Line<'static>>, theme: Theme) {
    let block = Block::bordered().title("Details (Enter: show all)").border_style(theme.dim());
    frame.render_widget(Paragraph::new(lines).wrap(Wrap { trim: false }).block(block), area);
}

/// Draws the details over the whole body; returns the effective scroll offset.
pub(super) fn full(
    frame: &mut Frame,
    area: Rect,
    key: &Key,
    lines: Vec<Line<'static>>,
    scroll: u16,
    theme: Theme,
) -> u16 {
    let title = if key.0.is_empty() { key.1.clone() } else { format!("{}/{}", key.0, key.1) };
    let block = Block::bordered().title(clean(&title).into_owned()).border_style(theme.frame(true));
    let inner = block.inner(area);
    // Wrapped lines count as often as they are broken.
    let width = usize::from(inner.width.max(1));
    let height: usize = lines.iter().map(|line| line.width().div_ceil(width).max(1)).sum();
    let most = u16::try_from(height.saturating_sub(usize::from(inner.height))).unwrap_or(u16::MAX);
    let scroll = scroll.min(most);
    frame.render_widget(
        Paragraph::new(lines).wrap(Wrap { trim: false }).scroll((scroll, 0)).block(block),
        area,
    );
    scroll
}
