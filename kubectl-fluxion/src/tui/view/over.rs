//! Overlays: help and the confirmation of a cancel.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::{Block, Clear, Paragraph, Wrap};

use super::theme::Theme;
use crate::cancel;
use crate::render::{amounts, clean};
use crate::tui::app::{App, Over};

/// Maximum number of objects listed in the confirmation of a cancel.
const TARGETS: usize = 5;

const HELP: [&str; 14] = [
    "↑ ↓ j k       move the selection",
    "PgUp PgDn     move by ten lines",
    "g G           go to the first or last line",
    "tab ← →       next pane",
    "enter         show details",
    "/             filter by name, state or reason",
    "esc           clear the filter",
    "s             change the sort order",
    "a             cycle through waiting, running and all jobs",
    "c             cancel the selected job (asks for confirmation)",
    "q Ctrl-C      quit",
    "",
    "bars: █ allocated  ▒ reserved  · free",
    "press any key to close this help",
];

/// Draws the overlay, if any.
pub(super) fn draw(frame: &mut Frame, area: Rect, app: &App, theme: Theme) {
    let (title, lines) = match &app.over {
        None | Some(Over::Detail { .. }) => return,
        Some(Over::Help) => ("Keys", HELP.map(Line::raw).to_vec()),
        Some(Over::Asking(_, job)) => {
            ("Cancel", vec![Line::raw(format!("checking what cancelling {} would delete …", clean(job)))])
        }
        Some(Over::Confirm(job, answer)) => {
            let mut lines =
                vec![Line::styled(format!("Cancel {}?", clean(&job.reference().to_string())), theme.bold())];
            let pods = if answer.pods == 1 {
                "1 Pod will be deleted".to_owned()
            } else {
                format!("{} Pods will be deleted", answer.pods)
            };
            lines.push(Line::raw(pods));
            for target in answer.targets.iter().take(TARGETS) {
                lines.push(Line::raw(format!("deletes {}", clean(&cancel::name(target)))));
            }
            if answer.targets.len() > TARGETS {
                lines.push(Line::raw(format!("and {} more", answer.targets.len() - TARGETS)));
            }
            if !answer.frees.is_empty() {
                lines.push(Line::raw(format!("frees {}", clean(&amounts(&answer.frees)))));
            }
            if !answer.starts_next.is_empty() {
                lines.push(Line::raw(format!("would start next: {}", clean(&answer.starts_next.join(", ")))));
            }
            lines.push(Line::raw(""));
            lines.push(Line::styled("y cancel the job   n keep it", theme.bold()));
            ("Cancel", lines)
        }
    };
    let widest = lines.iter().map(Line::width).max().unwrap_or_default();
    let width = u16::try_from(widest + 4).unwrap_or(u16::MAX).min(area.width);
    let inner = usize::from(width.saturating_sub(2).max(1));
    let rows: usize = lines.iter().map(|line| line.width().div_ceil(inner).max(1)).sum();
    let height = u16::try_from(rows + 2).unwrap_or(u16::MAX).min(area.height);
    let window =
        Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height };
    let block = Block::bordered().title(title).border_style(theme.frame(true));
    frame.render_widget(Clear, window);
    frame.render_widget(Paragraph::new(lines).wrap(Wrap { trim: false }).block(block), window);
}
