//! POSIX error numbers. Fluxion's results depend on the error number that the last failed step left
//! behind.

/// An error number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Errno {
    /// No error was recorded.
    #[default]
    Unset,
    /// No such entry.
    Enoent,
    /// Device or resource busy: it could succeed later.
    Ebusy,
    /// No such device: it can never succeed.
    Enodev,
    /// Invalid argument.
    Einval,
    /// Out of range.
    Erange,
    /// Value too large.
    Eoverflow,
}

impl Errno {
    /// The message of the C library.
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
