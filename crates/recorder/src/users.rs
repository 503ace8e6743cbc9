//! Users of the machine and their groups, wherever it keeps them.
//!
//! glibc asks the services in nsswitch.conf: files, LDAP, sssd. musl, of the programs that are linked statically, knows
//! only files and nscd, so that a user of a site would lose its groups; there, getent(1) of the machine is asked first.

use std::ffi::CString;
use std::path::Path;
use std::process::{Command, Stdio};

use nix::unistd::{Gid, Uid, User, getgrouplist};

/// Places of getent(1). Not by PATH: it runs with the rights of the recorder.
const GETENT: [&str; 2] = ["/usr/bin/getent", "/bin/getent"];

/// A user: the name, and the numbers that a process of it has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Account {
    /// The name.
    pub(crate) name: String,
    /// The user's number.
    pub(crate) uid: Uid,
    /// The number of the user's own group.
    pub(crate) gid: Gid,
}

impl Account {
    /// The user of this name.
    ///
    /// # Errors
    /// If the list of users cannot be read.
    pub(crate) fn named(name: &str) -> nix::Result<Option<Self>> {
        match from_services(name).filter(|account| account.name == name) {
            Some(account) => Ok(Some(account)),
            None => Ok(User::from_name(name)?.map(Self::from)),
        }
    }

    /// The user of this number.
    ///
    /// # Errors
    /// If the list of users cannot be read.
    pub(crate) fn numbered(uid: Uid) -> nix::Result<Option<Self>> {
        match from_services(&uid.to_string()).filter(|account| account.uid == uid) {
            Some(account) => Ok(Some(account)),
            None => Ok(User::from_uid(uid)?.map(Self::from)),
        }
    }

    /// All groups that it is in.
    pub(crate) fn groups(&self) -> Vec<Gid> {
        let line = ask("initgroups", &self.name);
        if let Some(groups) = line.and_then(|line| groups(&line, &self.name, self.gid)) {
            return groups;
        }
        let name = CString::new(self.name.as_str()).ok();
        name.and_then(|name| getgrouplist(&name, self.gid).ok()).unwrap_or_else(|| vec![self.gid])
    }
}

impl From<User> for Account {
    fn from(user: User) -> Self {
        Self { name: user.name, uid: user.uid, gid: user.gid }
    }
}

/// A user that a service of the machine knows, by name or number.
fn from_services(key: &str) -> Option<Account> {
    account(&ask("passwd", key)?)
}

/// What getent prints for a key of a database; `None` with glibc, which does the same itself.
fn ask(database: &str, key: &str) -> Option<String> {
    if !cfg!(target_env = "musl") {
        return None;
    }
    let getent = GETENT.iter().find(|path| Path::new(path).exists())?;
    let mut command = Command::new(getent);
    // An empty environment: it chooses no libraries and no services.
    command.args([database, "--", key]).env_clear().stdin(Stdio::null()).stderr(Stdio::null());
    let output = command.output().ok().filter(|output| output.status.success())?;
    // A name of a person may be in any encoding.
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// A line of passwd(5).
fn account(line: &str) -> Option<Account> {
    let mut fields = line.lines().next()?.split(':');
    let (name, _password) = (fields.next()?, fields.next()?);
    let (uid, gid) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some(Account { name: name.to_owned(), uid: Uid::from_raw(uid), gid: Gid::from_raw(gid) })
}

/// The groups in a line of `getent initgroups`, behind the name, which may have spaces, and the user's own.
fn groups(line: &str, name: &str, own: Gid) -> Option<Vec<Gid>> {
    let others = line.lines().next()?.strip_prefix(name)?;
    let mut groups = vec![own];
    for word in others.split_whitespace() {
        let group = Gid::from_raw(word.parse().ok()?);
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    Some(groups)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_getent_prints_is_read() {
        let line = "physics:*:70001:7000:A. User,,,:/home/physics:/bin/bash\n";
        let expected = Account {
            name: "physics".into(),
            uid: Uid::from_raw(70_001),
            gid: Gid::from_raw(7000),
        };
        assert_eq!(account(line), Some(expected));
        for wrong in ["", "\n", "physics", "physics:x:a:b", "physics:x:70001"] {
            assert_eq!(account(wrong), None, "{wrong}");
        }
        let raw = |line, name| -> Option<Vec<u32>> {
            let groups = groups(line, name, Gid::from_raw(7000))?;
            Some(groups.iter().map(|gid| gid.as_raw()).collect())
        };
        assert_eq!(
            raw("physics               7000 27 7100\n", "physics"),
            Some(vec![7000, 27, 7100])
        );
        assert_eq!(raw("physics              \n", "physics"), Some(vec![7000]));
        // A number in a name is no group.
        assert_eq!(raw("lab 0                 7100\n", "lab 0"), Some(vec![7000, 7100]));
        for wrong in ["", "\n", "other 27\n", "physics x27\n"] {
            assert_eq!(raw(wrong, "physics"), None, "{wrong}");
        }
    }

    #[test]
    fn root_is_known() {
        let root = Account::named("root").unwrap().unwrap();
        assert_eq!(root.uid, Uid::from_raw(0));
        assert_eq!(Account::numbered(root.uid).unwrap(), Some(root.clone()));
        assert!(root.groups().contains(&root.gid));
        assert_eq!(Account::named("no such user").unwrap(), None);
    }
}
