//! Splits command-line arguments as GNU `getopt_long` does: options anywhere, unique prefixes of long
//! names, `--name=value`, `-nvalue`, `-ab`, `--`.

/// An option that the program knows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known {
    /// Its letter. An option without one is spelt in full, so that it makes no abbreviation ambiguous.
    pub(super) short: Option<char>,
    /// Its long name.
    pub(super) long: &'static str,
    /// Whether it takes a value.
    pub(super) value: bool,
}

/// One thing found on the command line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// An option by its long name, with its value.
    Option(&'static str, String),
    /// Anything else.
    Rest,
}

/// Goes through arguments one by one.
pub(super) struct Getopt<'a> {
    known: &'a [Known],
    arguments: std::vec::IntoIter<String>,
    /// Letters left of an argument such as `-de`.
    letters: String,
    only_rest: bool,
}

impl<'a> Getopt<'a> {
    pub(super) fn new(known: &'a [Known], arguments: Vec<String>) -> Self {
        Self { known, arguments: arguments.into_iter(), letters: String::new(), only_rest: false }
    }

    /// The next option or other argument; an error is a message for the user.
    pub(super) fn next(&mut self) -> Option<Result<Found, String>> {
        if !self.letters.is_empty() {
            return Some(self.letter());
        }
        let argument = self.arguments.next()?;
        if self.only_rest {
            return Some(Ok(Found::Rest));
        }
        if argument == "--" {
            self.only_rest = true;
            return self.next();
        }
        if let Some(long) = argument.strip_prefix("--") {
            return Some(self.long(long));
        }
        match argument.strip_prefix('-') {
            Some(letters) if !letters.is_empty() => {
                letters.clone_into(&mut self.letters);
                Some(self.letter())
            }
            _ => Some(Ok(Found::Rest)),
        }
    }

    fn letter(&mut self) -> Result<Found, String> {
        let letter = self.letters.remove(0);
        let known = self.known.iter().find(|known| known.short == Some(letter));
        let known = known.ok_or_else(|| format!("invalid option -- '{letter}'"))?;
        if !known.value {
            return Ok(Found::Option(known.long, String::new()));
        }
        let attached = std::mem::take(&mut self.letters);
        let value = if attached.is_empty() { self.arguments.next() } else { Some(attached) };
        let value = value.ok_or_else(|| format!("option requires an argument -- '{letter}'"))?;
        Ok(Found::Option(known.long, value))
    }

    fn long(&mut self, text: &str) -> Result<Found, String> {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (text, None),
        };
        let mut matching =
            self.known.iter().filter(|known| known.short.is_some() && known.long.starts_with(name));
        let exact = self.known.iter().find(|known| known.long == name);
        let known = match (exact, matching.next(), matching.next()) {
            (Some(exact), _, _) => exact,
            (None, Some(only), None) => only,
            (None, None, _) => return Err(format!("unrecognized option '--{name}'")),
            (None, Some(_), Some(_)) => return Err(format!("option '--{name}' is ambiguous")),
        };
        match (known.value, value) {
            (false, Some(_)) => Err(format!("option '--{}' doesn't allow an argument", known.long)),
            (false, None) => Ok(Found::Option(known.long, String::new())),
            (true, value) => {
                let value = value.or_else(|| self.arguments.next());
                let value = value.ok_or_else(|| format!("option '--{}' requires an argument", known.long))?;
                Ok(Found::Option(known.long, value))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [Known; 5] = [
        Known { short: Some('f'), long: "file", value: true },
        Known { short: Some('o'), long: "format", value: true },
        Known { short: None, long: "exact", value: false },
        Known { short: Some('d'), long: "debug", value: false },
        Known { short: Some('e'), long: "echo", value: false },
    ];

    fn all(arguments: &[&str]) -> Vec<Result<Found, String>> {
        let mut getopt = Getopt::new(&KNOWN, arguments.iter().map(ToString::to_string).collect());
        std::iter::from_fn(|| getopt.next()).collect()
    }

    #[test]
    fn takes_values_in_every_spelling() {
        let file = || Ok(Found::Option("file", "x".to_owned()));
        for spelling in [&["-f", "x"][..], &["-fx"], &["--file", "x"], &["--file=x"], &["--fi=x"]] {
            assert_eq!(all(spelling), [file()], "{spelling:?}");
        }
        let flag = |name| Ok(Found::Option(name, String::new()));
        assert_eq!(all(&["-def", "x"]), [flag("debug"), flag("echo"), file()]);
        assert_eq!(
            all(&["a", "-d", "--", "-e", "-"]),
            [Ok(Found::Rest), flag("debug"), Ok(Found::Rest), Ok(Found::Rest)]
        );
        assert_eq!(all(&["--file="]), [Ok(Found::Option("file", String::new()))]);
    }

    #[test]
    fn an_option_without_a_letter_is_spelt_in_full() {
        let flag = |name| Ok(Found::Option(name, String::new()));
        assert_eq!(all(&["--e", "--exact"]), [flag("echo"), flag("exact")]);
        assert!(all(&["--exac"])[0].is_err());
    }

    #[test]
    fn complains_about_the_rest() {
        for wrong in [&["-x"][..], &["--x"], &["--f", "x"], &["-f"], &["--file"], &["--debug=1"]] {
            assert!(all(wrong)[0].is_err(), "{wrong:?}");
        }
    }
}
