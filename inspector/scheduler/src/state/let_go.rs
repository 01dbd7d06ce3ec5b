//! A bound Pod that was let go.

/// A Pod that was let go.
#[derive(Clone, Copy, Debug)]
pub(super) struct LetGo {
    pub(super) since: i64,
    /// When it is evicted again, if it is still there.
    pub(super) again: i64,
}
