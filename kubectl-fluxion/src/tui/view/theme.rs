//! Colors by meaning; without colors, bold and reverse video are used for emphasis.

use fluxion_api::JobState;
use ratatui::style::{Color, Modifier, Style};

use crate::tui::app::App;

#[derive(Clone, Copy)]
pub(super) struct Theme {
    colours: bool,
}

#[expect(
    clippy::unused_self,
    reason = "the styles are all asked of the theme, whether colours matter to them or not"
)]
impl Theme {
    pub(super) fn of(app: &App) -> Self {
        Self { colours: app.colours }
    }

    fn colour(self, colour: Color, instead: Modifier) -> Style {
        if self.colours { Style::new().fg(colour) } else { Style::new().add_modifier(instead) }
    }

    pub(super) fn bold(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    pub(super) fn dim(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    pub(super) fn good(self) -> Style {
        self.colour(Color::Green, Modifier::empty())
    }

    pub(super) fn warn(self) -> Style {
        self.colour(Color::Yellow, Modifier::empty())
    }

    pub(super) fn bad(self) -> Style {
        self.colour(Color::Red, Modifier::BOLD)
    }

    /// Alerts.
    pub(super) fn alarm(self) -> Style {
        if self.colours {
            Style::new().fg(Color::Black).bg(Color::Yellow).add_modifier(Modifier::BOLD)
        } else {
            Style::new().add_modifier(Modifier::REVERSED)
        }
    }

    /// The selected line.
    pub(super) fn chosen(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// The frame of a pane.
    pub(super) fn frame(self, focused: bool) -> Style {
        if focused { self.colour(Color::Cyan, Modifier::BOLD) } else { self.dim() }
    }

    /// A state's colour.
    pub(super) fn state(self, state: &JobState) -> Style {
        match state {
            JobState::Running | JobState::Binding => self.good(),
            JobState::Reserved | JobState::Gathering | JobState::Suspended | JobState::Releasing => {
                self.warn()
            }
            JobState::Unsatisfiable | JobState::Failed => self.bad(),
            JobState::Completed | JobState::Cancelled => self.dim(),
            JobState::Pending | JobState::Unknown(_) => Style::new(),
        }
    }

    /// Style for a usage ratio, 0 to 1.
    pub(super) fn load(self, ratio: f64) -> Style {
        if ratio >= 0.9 {
            self.bad()
        } else if ratio >= 0.6 {
            self.warn()
        } else {
            self.good()
        }
    }
}
