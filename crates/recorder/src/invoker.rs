//! The user that the command runs as, and its environment.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;

use anyhow::{Context, Result, bail};
use nix::unistd::{Gid, Uid};
use proctrace_outputs::{Outputs, Owner};
use proctrace_record::{Identity, variables};

use crate::users::Account;

/// The variables of a process, in their order.
pub type Environment = Vec<(OsString, OsString)>;

/// A user other than the recorder's.
pub(crate) struct Invoker {
    identity: Identity,
    /// The environment sudo was called with; None if it cannot be determined.
    environment: Option<Environment>,
}

/// The user of a command, if it is not our own, and the environment that it has.
///
/// # Errors
/// If there is no such user, or only root could run a command as that user.
pub fn of_command(wanted: Option<&str>) -> Result<(Option<Identity>, Environment)> {
    let (identity, environment) = match find(wanted)? {
        Some(invoker) => (Some(invoker.identity), invoker.environment),
        None => (None, None),
    };
    Ok((identity, environment.unwrap_or_else(|| std::env::vars_os().collect())))
}

/// The user named by `--user`, or the one who called sudo; None if the command runs as our own
/// user.
pub(crate) fn find(wanted: Option<&str>) -> Result<Option<Invoker>> {
    if let Some(name) = wanted {
        let user = Account::named(name)
            .with_context(|| format!("cannot look up user {name}"))?
            .with_context(|| format!("there is no user {name}"))?;
        if user.uid == nix::unistd::geteuid() {
            return Ok(None);
        }
        if !nix::unistd::geteuid().is_root() {
            bail!("only root can run the command as {name}");
        }
        return Ok(Some(Invoker { identity: identity(&user), environment: None }));
    }
    let Some(Owner { uid, gid }) = of_sudo() else { return Ok(None) };
    let identity = match Account::numbered(Uid::from_raw(uid)) {
        Ok(Some(user)) => identity(&user),
        _ => Identity {
            uid: Uid::from_raw(uid),
            gid: Gid::from_raw(gid),
            groups: vec![Gid::from_raw(gid)],
        },
    };
    Ok(Some(Invoker { identity, environment: sudos_environment() }))
}

/// The user who called sudo; None if it was root, or if there is no sudo.
fn of_sudo() -> Option<Owner> {
    // These variables can be trusted only as root, where sudo set them; anyone else could have
    // forged them.
    if !(nix::unistd::geteuid().is_root() && nix::unistd::getuid().is_root()) {
        return None;
    }
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u32>().ok());
    let (uid, gid) = (number("SUDO_UID")?, number("SUDO_GID")?);
    (uid != 0).then_some(Owner { uid, gid })
}

/// Settings for writing files that somebody asks for: under sudo they belong to the user who called it.
pub fn outputs() -> Outputs {
    let own = Outputs::of_this_process();
    of_sudo().map_or(own.clone(), |owner| own.owned_by(owner))
}

/// The same for what a command of this user did; None: of our own user. Without sudo, the files belong to that user.
pub fn outputs_for(identity: Option<&Identity>) -> Outputs {
    let of_command = |user: &Identity| Owner { uid: user.uid.as_raw(), gid: user.gid.as_raw() };
    let own = Outputs::of_this_process();
    // What the user of the command has put there may be replaced either way.
    let own = identity.map_or(own.clone(), |user| own.trusting(user.uid.as_raw()));
    match of_sudo().or(identity.map(of_command)) {
        Some(owner) => own.owned_by(owner),
        None => own,
    }
}

fn identity(user: &Account) -> Identity {
    Identity { uid: user.uid, gid: user.gid, groups: user.groups() }
}

/// sudo replaces the environment of its child, but the one it was called with is still its own.
fn sudos_environment() -> Option<Environment> {
    let mut pid = std::os::unix::process::parent_id();
    // sudo, or sudo's monitor, or an intermediate shell
    for _ in 0..4 {
        if fs::read_to_string(format!("/proc/{pid}/comm")).ok()?.trim_end() == "sudo" {
            let block = fs::read(format!("/proc/{pid}/environ")).ok()?;
            let word = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
            return Some(
                variables(&block).map(|(name, value)| (word(name), word(value))).collect(),
            );
        }
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        pid = status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()?;
    }
    None
}
