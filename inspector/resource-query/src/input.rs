//! Reads commands: lines that end at a newline or a carriage return, split at white space.

use std::io::{self, BufRead};

/// The longest line, in bytes: room for a multi-match of some hundred thousand files.
pub(crate) const LINE_MAX: usize = 16 << 20;

/// Reads the next line without its end; none at the end of the input. Broken UTF-8 is replaced. Errors: those of the
/// input, and a line of more than `most` bytes.
pub(crate) fn read_line(input: &mut dyn BufRead, most: usize) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    let mut any = false;
    loop {
        let buffer = input.fill_buf()?;
        if buffer.is_empty() {
            return Ok(any.then(|| String::from_utf8_lossy(&line).into_owned()));
        }
        any = true;
        let end = buffer.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
        let taken = end.unwrap_or(buffer.len());
        if line.len() + taken > most {
            let message = format!("line is longer than {most} bytes: the input is not a list of commands");
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        line.extend_from_slice(&buffer[..taken]);
        input.consume(end.map_or(taken, |at| at + 1));
        if end.is_some() {
            return Ok(Some(String::from_utf8_lossy(&line).into_owned()));
        }
    }
}

/// The words of a line.
pub(crate) fn words(line: &str) -> Vec<&str> {
    line.split([' ', '\t', '\r', '\n', '\u{b}', '\u{c}']).filter(|word| !word.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_without_an_end_is_an_error() {
        let mut input = io::BufReader::new(io::repeat(b'a'));
        assert!(read_line(&mut input, 100_000).unwrap_err().to_string().contains("longer than 100000 bytes"));
    }

    #[test]
    fn both_ends_of_a_line_count_and_the_last_may_miss_it() {
        let mut input = &b"one two\rthree\n\n\xff"[..];
        let mut lines = Vec::new();
        while let Some(line) = read_line(&mut input, 9).unwrap() {
            lines.push(line);
        }
        assert_eq!(lines, ["one two", "three", "", "\u{fffd}"]);
        assert_eq!(words("\t a\u{b}b  c\u{c}"), ["a", "b", "c"]);
    }
}
