//! Error numbers of the operating system's tradition. Fluxion's answers depend on which one the last
//! failing step left behind.

/// Why a step failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Errno {
    /// No error was recorded.
    #[default]
    Unset,
    /// No such entry.
    Enoent,
    /// Busy: it could work later.
    Ebusy,
    /// No such device: it can't ever work.
    Enodev,
    /// Invalid argument.
    Einval,
    /// Out of range.
    Erange,
    /// A value does not fit.
    Eoverflow,
}

impl Errno {
    /// The text that the C library has for it.
    pub fn text(self) -> &'static str {
        match self {
            Self::Unset => "Success",
            Self::Enoent => "No such file or directory",
            Self::Ebusy => "Device or resource busy",
            Self::Enodev => "No such device",
            Self::Einval => "Invalid argument",
            Self::Erange => "Numerical result out of range",
            Self::Eoverflow => "Value too large for defined data type",
        }
    }
}

impl std::fmt::Display for Errno {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.text())
    }
}

impl std::error::Error for Errno {}
