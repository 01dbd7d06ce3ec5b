//! A released Pod.

/// A Pod that was released.
#[derive(Clone, Copy, Debug)]
pub(super) struct LetGo {
    pub(super) since: i64,
    /// When it is evicted again, if it still exists.
    pub(super) again: i64,
}
