//! Usage bars.

use fluxion_text::quantity::Amount;

/// Usage of a resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    pub whole: Amount,
    /// Currently allocated.
    pub used: Amount,
    /// Reserved in addition.
    pub reserved: Amount,
}

/// A bar of `width` cells: `█` allocated, `▒` reserved, `·` free. Nonzero usage shows at least one cell, and
/// only full usage fills the bar.
pub fn bar(share: Share, width: usize) -> String {
    let cells = |amount: Amount| -> usize {
        if amount <= Amount::ZERO || share.whole <= Amount::ZERO {
            return 0;
        }
        if amount >= share.whole {
            return width;
        }
        let wide = i128::try_from(width).unwrap_or(i128::MAX);
        let scaled = amount.nanos().saturating_mul(wide) / share.whole.nanos();
        usize::try_from(scaled).unwrap_or(width).clamp(1, width.saturating_sub(1).max(1))
    };
    let used = cells(share.used);
    let planned = cells(share.used.plus(share.reserved)).max(used) - used;
    let mut text = "█".repeat(used);
    text.push_str(&"▒".repeat(planned));
    text.push_str(&"·".repeat(width.saturating_sub(used + planned)));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(whole: u64, used: u64, reserved: u64) -> String {
        bar(
            Share {
                whole: Amount::from_milli(whole),
                used: Amount::from_milli(used),
                reserved: Amount::from_milli(reserved),
            },
            8,
        )
    }

    #[test]
    fn bars() {
        assert_eq!(of(0, 0, 0), "········");
        assert_eq!(of(100, 0, 0), "········");
        assert_eq!(of(100, 1, 0), "█·······");
        assert_eq!(of(100, 50, 25), "████▒▒··");
        assert_eq!(of(100, 99, 0), "███████·");
        assert_eq!(of(100, 100, 50), "████████");
        assert_eq!(of(100, 300, 0), "████████");
        assert_eq!(of(u64::MAX, u64::MAX / 2, u64::MAX), "███▒▒▒▒▒");
    }
}
