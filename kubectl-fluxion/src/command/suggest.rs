//! Completion for `kubectl fluxion`: kubectl runs an executable named `kubectl_complete-fluxion` with the current
//! words, and reads one suggestion per line followed by a completion directive.

use std::time::Duration;

use clap::{ArgAction, CommandFactory, Parser};
use fluxion_api::FluxionJob;
use fluxion_api::client::Selection;
use fluxion_text::clean;

use crate::cli::{Cli, Connection, Scope};
use crate::{connect, lookup, output};

/// Name of the executable that kubectl runs for completion.
pub const PROGRAM: &str = "kubectl_complete-fluxion";

/// Completion directive: no file names.
const NO_FILES: &str = ":4";
/// Completion directive: default, including file names.
const FILES: &str = ":0";
/// Timeout for the completion of job names.
const PATIENCE: Duration = Duration::from_secs(2);

/// What the last word can be.
#[derive(Debug, PartialEq, Eq)]
enum Place {
    /// One of these values, with descriptions.
    OneOf(Vec<(String, String)>),
    Job,
    File,
    Anything,
}

/// Prints suggestions for the last of `words`, which may be empty. It never fails; at worst it prints no suggestions.
pub async fn run(words: &[String]) {
    let typed = words.last().map_or("", String::as_str);
    let (suggestions, end) = match place(words) {
        Place::OneOf(all) => (all, NO_FILES),
        Place::Job => (jobs(words).await.into_iter().map(|job| (job, String::new())).collect(), NO_FILES),
        Place::File => (Vec::new(), FILES),
        Place::Anything => (Vec::new(), NO_FILES),
    };
    let fitting = suggestions.into_iter().filter(|(word, _)| word.starts_with(typed));
    let mut text = String::new();
    for (word, help) in fitting {
        let gap = if help.is_empty() { "" } else { "\t" };
        putln!(text, "{}{gap}{}", clean(&word), clean(&help));
    }
    putln!(text, "{end}");
    // A shell that doesn't listen any more needs no answer.
    output::plain(&text).ok();
}

fn place(words: &[String]) -> Place {
    let root = Cli::command();
    let mut command = &root;
    let mut value_of = None;
    let Some((typed, before)) = words.split_last() else { return Place::Anything };
    for word in before {
        if value_of.take().is_some() {
            continue;
        }
        if word.starts_with('-') {
            value_of = option(&root, command, word);
        } else if let Some(next) = command.find_subcommand(word) {
            command = next;
        }
    }
    if let Some(option) = value_of {
        return values(option);
    }
    if typed.starts_with('-') {
        let all = command.get_arguments().chain(root.get_arguments().filter(|it| it.is_global_set()));
        let flags = all
            .filter(|it| !it.is_hide_set())
            .filter_map(|it| Some((format!("--{}", it.get_long()?), help(it.get_help()))));
        return Place::OneOf(flags.collect());
    }
    if command.has_subcommands() {
        let all = command.get_subcommands().filter(|it| !it.is_hide_set());
        return Place::OneOf(all.map(|it| (it.get_name().to_owned(), help(it.get_about()))).collect());
    }
    match command.get_positionals().next() {
        Some(positional) if positional.get_id().as_str().starts_with("job") => Place::Job,
        Some(positional) => values(positional),
        None => Place::Anything,
    }
}

/// The option in `word`, if its value is the next word.
fn option<'a>(root: &'a clap::Command, command: &'a clap::Command, word: &str) -> Option<&'a clap::Arg> {
    let found = command.get_arguments().chain(root.get_arguments()).find(|it| is(it, word))?;
    (!word.contains('=') && matches!(found.get_action(), ArgAction::Set | ArgAction::Append)).then_some(found)
}

/// Whether `word` is this flag or option, with or without `=VALUE`.
fn is(argument: &clap::Arg, word: &str) -> bool {
    let name = word.split('=').next().unwrap_or_default();
    argument.get_long().is_some_and(|long| name.strip_prefix("--") == Some(long))
        || argument
            .get_short()
            .is_some_and(|short| name.strip_prefix('-') == Some(short.to_string().as_str()))
}

fn values(argument: &clap::Arg) -> Place {
    let possible = argument.get_possible_values();
    if !possible.is_empty() {
        return Place::OneOf(
            possible.iter().map(|it| (it.get_name().to_owned(), help(it.get_help()))).collect(),
        );
    }
    match argument.get_value_names() {
        Some([name]) if name == "FILE" => Place::File,
        _ => Place::Anything,
    }
}

fn help(text: Option<&clap::builder::StyledStr>) -> String {
    text.map(ToString::to_string).unwrap_or_default()
}

/// Jobs on the server selected by the preceding words.
async fn jobs(words: &[String]) -> Vec<String> {
    #[derive(Parser)]
    struct Where {
        #[command(flatten)]
        connection: Connection,
        #[command(flatten)]
        scope: Scope,
    }
    let where_words = std::iter::once("complete".to_owned()).chain(that_say_where(words));
    let Ok(Where { mut connection, scope }) = Where::try_parse_from(where_words) else { return Vec::new() };
    connection.timeout = Some(PATIENCE);
    let Ok(server) = connect::connect(&connection).await else { return Vec::new() };
    let namespace = lookup::namespaces(&server, &scope);
    let all_namespaces = namespace.is_none();
    let selection = Selection { namespace, ..Selection::default() };
    let Ok(list) = server.client.list::<FluxionJob>(&selection).await else { return Vec::new() };
    let names = list.items.iter().filter(|job| !job.has_ended()).map(|job| {
        let mut reference = job.reference();
        if !all_namespaces {
            reference.namespace = None;
        }
        reference.to_string()
    });
    names.collect()
}

/// The words that select the server and namespace.
fn that_say_where(words: &[String]) -> Vec<String> {
    let root = Cli::command();
    let mut chosen = Vec::new();
    let mut words = words.iter().take(words.len().saturating_sub(1));
    while let Some(word) = words.next() {
        if !word.starts_with('-') || !root.get_arguments().any(|it| is(it, word)) {
            continue;
        }
        chosen.push(word.clone());
        if option(&root, &root, word).is_some() {
            chosen.extend(words.next().cloned());
        }
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(words: &[&str]) -> Place {
        place(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
    }

    fn words(place: Place) -> Vec<String> {
        match place {
            Place::OneOf(all) => all.into_iter().map(|(word, _)| word).collect(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_may_stand_where() {
        assert!(words(at(&[""])).contains(&"reservations".to_owned()));
        assert!(words(at(&["-n", "x", ""])).contains(&"queue".to_owned()));
        assert!(words(at(&["queue", "--"])).contains(&"--state".to_owned()));
        assert!(words(at(&["queue", "--"])).contains(&"--server".to_owned()));
        assert_eq!(words(at(&["queue", "-o", ""])), ["table", "wide", "json", "yaml", "name"]);
        assert_eq!(at(&["explain", ""]), Place::Job);
        assert_eq!(at(&["cancel", "-y", "job/a", ""]), Place::Job);
        assert_eq!(at(&["queue", "--token-file", ""]), Place::File);
        assert_eq!(at(&["queue", "-n", ""]), Place::Anything);
        assert_eq!(at(&[]), Place::Anything);
    }
}
