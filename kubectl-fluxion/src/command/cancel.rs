//! `cancel`: finds the jobs, shows a preview, asks for confirmation, cancels them and prints the outcomes.

use std::io::{self, BufRead, IsTerminal, Write};

use fluxion_api::client::Client;
use fluxion_api::{CancelAnswer, Exit, FluxionJob, JobRef};
use fluxion_text::{clean, clean_lines};
use futures::{StreamExt, stream};

use crate::cancel::{self, Deleter, Outcome};
use crate::cli::{Cancel, Connection, Scope};
use crate::connect::Server;
use crate::failure::Failure;
use crate::{lookup, output};

/// Maximum number of concurrent requests.
const AT_ONCE: usize = 8;

/// A job specified on the command line.
enum Step {
    /// Nothing to do; the outcome is known.
    Settled(Outcome),
    /// What would be deleted.
    Planned(Box<FluxionJob>, Box<CancelAnswer>),
}

/// Cancels the jobs and prints one line per job to stdout, in the given order.
pub(super) async fn run(
    server: &Server,
    scope: &Scope,
    flags: &Connection,
    what: &Cancel,
) -> Result<Exit, Failure> {
    let client = &server.client;
    let namespace = lookup::namespaces(server, scope);
    let mut wanted: Vec<&JobRef> = Vec::new();
    for job in &what.jobs {
        if !wanted.contains(&job) {
            wanted.push(job);
        }
    }
    let steps: Vec<(String, Step)> = stream::iter(wanted)
        .map(|job| prepare(client, namespace.as_deref(), job, what.with_others))
        .buffered(AT_ONCE)
        .collect()
        .await;
    let planned = || {
        steps.iter().filter_map(|(name, step)| match step {
            Step::Planned(_, answer) => Some((name.as_str(), answer.as_ref())),
            Step::Settled(_) => None,
        })
    };
    let refused = if planned().next().is_none() || what.yes {
        None
    } else {
        say(&preview(planned()));
        if what.dry_run { None } else { confirm(planned().count())? }
    };
    let standalone = match planned().next() {
        Some((_, answer)) if !what.dry_run && refused.is_none() => {
            cancel::is_standalone(client, answer.metadata.namespace.as_deref().unwrap_or(&server.namespace))
                .await?
        }
        _ => false,
    };
    let deleter = Deleter::new(flags);
    let mut exits = Vec::new();
    for (name, step) in steps {
        let outcome = match step {
            Step::Settled(outcome) => outcome,
            Step::Planned(..) if what.dry_run => Outcome::DryRun,
            Step::Planned(job, answer) => match &refused {
                Some(why) => Outcome::Refused(why.clone()),
                None => cancel::carry_out(client, &deleter, standalone, &job, &answer).await,
            },
        };
        exits.push(outcome.exit());
        output::names([format!("{name} {}", outcome.text())])?;
    }
    Ok(together(&exits))
}

async fn prepare(
    client: &Client,
    namespace: Option<&str>,
    wanted: &JobRef,
    with_others: bool,
) -> (String, Step) {
    let job = match lookup::find(client, namespace, wanted).await {
        Ok(job) => job,
        Err(failure) => return (wanted.to_string(), Step::Settled(failure.into())),
    };
    let mut reference = job.reference();
    if wanted.namespace.is_none() && namespace.is_some() {
        reference.namespace = None;
    }
    let name = reference.to_string();
    match cancel::plan(client, &job, with_others).await {
        Ok(mut answer) => {
            answer.metadata.namespace.clone_from(&job.metadata.namespace);
            (name, Step::Planned(Box::new(job), Box::new(answer)))
        }
        Err(outcome) => (name, Step::Settled(outcome)),
    }
}

/// What would be deleted, job by job.
fn preview<'a>(planned: impl Iterator<Item = (&'a str, &'a CancelAnswer)>) -> String {
    let mut text = String::new();
    for (name, answer) in planned {
        let targets: Vec<String> = answer.targets.iter().map(cancel::name).collect();
        let pods = if answer.pods == 1 { "1 Pod".to_owned() } else { format!("{} Pods", answer.pods) };
        put!(text, "{}: {pods}", clean(name));
        if !targets.is_empty() {
            put!(text, "; deletes {}", clean(&targets.join(", ")));
        }
        if !answer.frees.is_empty() {
            put!(text, "; frees {}", clean(&crate::render::amounts(&answer.frees)));
        }
        text.push('\n');
        if !answer.also_deletes.is_empty() {
            putln!(text, "  also deletes Pods of other jobs: {}", clean(&answer.also_deletes.join(", ")));
        }
        if !answer.starts_next.is_empty() {
            putln!(text, "  would start next: {}", clean(&answer.starts_next.join(", ")));
        }
    }
    text
}

/// Asks for confirmation on the terminal. `Some` is the reason why it was not confirmed.
fn confirm(jobs: usize) -> Result<Option<String>, Failure> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Ok(Some("not a terminal, so nothing can be confirmed: pass -y".to_owned()));
    }
    let what = if jobs == 1 { "this job".to_owned() } else { format!("these {jobs} jobs") };
    say(&format!("Cancel {what}? [y/N] "));
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    let yes = matches!(answer.trim().to_lowercase().as_str(), "y" | "yes");
    Ok((!yes).then(|| "not confirmed".to_owned()))
}

/// Prints to stderr, so that stdout contains only outcomes; write errors are ignored.
fn say(text: &str) {
    let mut err = io::stderr().lock();
    drop(err.write_all(clean_lines(text).as_bytes()).and_then(|()| err.flush()));
}

/// The common exit code if all are equal, otherwise partial success.
fn together(exits: &[Exit]) -> Exit {
    match exits {
        [first, rest @ ..] if rest.iter().all(|exit| exit == first) => *first,
        [] => Exit::Done,
        _ => Exit::Partly,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_of_several_jobs() {
        assert_eq!(together(&[Exit::Done, Exit::Done]), Exit::Done);
        assert_eq!(together(&[Exit::NotFound]), Exit::NotFound);
        assert_eq!(together(&[Exit::Forbidden, Exit::Forbidden]), Exit::Forbidden);
        assert_eq!(together(&[Exit::Done, Exit::NotFound]), Exit::Partly);
        assert_eq!(together(&[Exit::Forbidden, Exit::NotFound]), Exit::Partly);
    }
}
