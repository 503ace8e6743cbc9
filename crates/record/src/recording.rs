//! A recording from its start to its end.

use nix::unistd::Pid;

use crate::alarm::Alarm;
use crate::cgroup::OwnCgroup;
use crate::command::{Command, Stage};
use crate::error::RecordError;
use crate::finish::Finished;
use crate::intake::Intake;
use crate::launch::{Held, LaunchError, launch};
use crate::machine::Reading;
use crate::options::Options;
use crate::session::Session;
use crate::signals::Signals;
use crate::sink::Sink;
use crate::source::{Hold, Source};

/// Records into `sink` whom the options say, and `command`, which it runs, with all descendants.
///
/// # Errors
/// When the command cannot be started ([`RecordError::Exec`], [`RecordError::Launch`]), or when
/// the source or the kernel's interfaces fail while it runs; the payload is then left alone.
pub fn record(
    source: &mut dyn Source,
    signals: &Signals,
    command: Option<&Command>,
    options: &Options,
    sink: &mut dyn Sink,
) -> Result<Finished, RecordError> {
    let alarm =
        Alarm::new(signals, &source.wakers()).map_err(RecordError::system("wait for events"))?;
    let machine = Reading::now();
    let root = match command {
        Some(command) => Some(start(source, command, signals)?),
        None => None,
    };
    let mut session = Session {
        source,
        signals,
        alarm,
        machine,
        options,
        root,
        payload: None,
        exit_seen: None,
        told_of_waiting: false,
        fate: command.map(|command| &command.fate),
        own_cgroup: command.and_then(|command| command.cgroup.as_deref()),
        intake: Intake::new(sink, options),
        samples: Vec::new(),
        losses: Vec::new(),
    };
    session.intake.tell_own_mounts();
    session.adopt_all()?;
    session.make_sure_of_somebody()?;
    let ended = session.follow()?;
    session.finish(ended)
}

fn start(
    source: &mut dyn Source,
    command: &Command,
    signals: &Signals,
) -> Result<Pid, RecordError> {
    let hold = source.arm()?;
    let cgroup = command.cgroup.as_deref().map(OwnCgroup::descriptor);
    let mut seize = |root| source.seize(root);
    let held = match &hold {
        Hold::No => None,
        Hold::UntilSeized(preparation) => Some(Held { preparation, seize: &mut seize }),
    };
    let started = launch(command, signals.before(), cgroup, held);
    if let Ok(root) = started {
        command.fate.set(Stage::Started(root));
    }
    started.map_err(|error| match error {
        LaunchError::Fork(source) => RecordError::Launch(source),
        LaunchError::Exec(source) => {
            let program = command.program.to_string_lossy().into_owned();
            RecordError::Exec { program, source }
        }
        LaunchError::Source(error) => RecordError::Source(error),
    })
}
