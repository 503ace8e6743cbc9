//! Arguments of a command of the recorder, with those that the analysis adds to it.

use clap::{ArgMatches, Args, Command, Error, FromArgMatches};

/// Two groups of arguments of one command, which is described by the first. `#[command(flatten)]` would let the last
/// group describe it.
#[derive(Debug)]
pub(crate) struct With<A, B> {
    pub(crate) base: A,
    pub(crate) more: B,
}

impl<A: Args, B: Args> Args for With<A, B> {
    fn augment_args(command: Command) -> Command {
        let command = A::augment_args(command);
        let (about, long) = (command.get_about().cloned(), command.get_long_about().cloned());
        let mut command = B::augment_args(command);
        if let Some(about) = about {
            command = command.about(about);
        }
        if let Some(long) = long {
            command = command.long_about(long);
        }
        command
    }

    fn augment_args_for_update(command: Command) -> Command {
        B::augment_args_for_update(A::augment_args_for_update(command))
    }
}

impl<A: FromArgMatches, B: FromArgMatches> FromArgMatches for With<A, B> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        Self::from_arg_matches_mut(&mut matches.clone())
    }

    fn from_arg_matches_mut(matches: &mut ArgMatches) -> Result<Self, Error> {
        let base = A::from_arg_matches_mut(matches)?;
        Ok(Self { base, more: B::from_arg_matches_mut(matches)? })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.update_from_arg_matches_mut(&mut matches.clone())
    }

    fn update_from_arg_matches_mut(&mut self, matches: &mut ArgMatches) -> Result<(), Error> {
        self.base.update_from_arg_matches_mut(matches)?;
        self.more.update_from_arg_matches_mut(matches)
    }
}
