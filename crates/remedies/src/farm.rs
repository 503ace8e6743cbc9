//! Writes a directory of links to libraries, and renews it.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use proctrace_analysis::{Candidate, FarmPlan, Kept};
use proctrace_findings::{DanglingLink, Farm, FarmCandidate, FarmConflict, FarmLink, KeptEntry};
use proctrace_outputs::{Access, Directory, OutputError, Outputs, is_part};
use proctrace_report::shell;
use proctrace_wire::escape::{to_bytes, to_text};
use thiserror::Error;

/// The list of the links in a directory, which shows that it is one of ours.
const MARKER: &str = ".proctrace-farm";

/// Longer than any list.
const MARKER_BYTES_MAX: u64 = 64 << 20;

/// The first line of that list.
const MARKER_HEAD: &str = "Links made by `proctrace libs --farm`, which renews or removes them:";

/// The name under which earlier versions created everything before it was renamed.
const NEW: &str = ".proctrace-farm.new";

/// The file for shells.
const ENVIRONMENT: &str = "env.sh";

/// Errors of making a directory of links.
#[derive(Debug, Error)]
pub enum FarmError {
    /// The path of the directory would be split, or changed, in LD_LIBRARY_PATH.
    #[error(
        "{directory} cannot be an entry of LD_LIBRARY_PATH, because it contains {wrong:?}: choose another \
         directory"
    )]
    Separator {
        /// The directory.
        directory: String,
        /// What it contains.
        wrong: char,
    },
    /// There is no library to link to.
    #[error(
        "no program of the recording finds a library by LD_LIBRARY_PATH: there is nothing to link to"
    )]
    Nothing,
    /// The directory is not, or not only, one of links that were made here by this user.
    #[error("{0}: choose another directory")]
    Taken(String),
    /// The recording was made with the directory.
    #[error("the job had {0} in its LD_LIBRARY_PATH: renew it from a recording without it")]
    Itself(String),
    /// A step failed.
    #[error("cannot {what}")]
    Failed {
        /// The step, for "cannot …".
        what: String,
        /// The cause.
        source: OutputError,
    },
}

/// Result of a step, with a name for what failed.
trait Step<T> {
    fn step(self, what: &str, path: &Path) -> Result<T, FarmError>;
}

impl<T, E: Into<OutputError>> Step<T> for Result<T, E> {
    fn step(self, what: &str, path: &Path) -> Result<T, FarmError> {
        let what = || format!("{what} {}", path.display());
        self.map_err(|error| FarmError::Failed { what: what(), source: error.into() })
    }
}

/// Makes or renews a directory of links.
///
/// Interrupted at any point, it leaves a directory that a second attempt accepts: links are listed before
/// they are made, and all that is replaced is replaced at once.
///
/// # Errors
/// If there is nothing to link to, if the directory has something else in it, or cannot be written.
pub fn make_farm(
    outputs: &Outputs,
    directory: &Path,
    remedy: &'static str,
    plan: &FarmPlan,
) -> Result<Farm, FarmError> {
    let directory = std::path::absolute(directory).step("find", directory)?;
    refuse_separators(&directory)?;
    if plan.links.is_empty() && plan.gone.is_empty() {
        return Err(FarmError::Nothing);
    }
    let open = outputs.create_directory(&directory, Access::Umask).step("create", &directory)?;
    let uid = open.owner().step("read", &directory)?;
    if !open.outputs().trusts(uid) && rustix::process::geteuid().is_root() {
        let directory = directory.display();
        let whose = format!("{directory} belongs to user {uid}, who could replace the links");
        return Err(FarmError::Taken(whose));
    }
    let place = FarmDirectory { directory, open };
    place.refuse_itself(plan)?;
    let before = place.own()?;
    let mut farm = Farm {
        directory: text(place.directory.as_os_str().as_bytes()),
        environment: text(&shell::quoted(place.at(ENVIRONMENT).as_os_str().as_bytes())),
        remedy,
        conflicts: conflicts(plan),
        failing: plan.failing.iter().map(|program| text(program)).collect(),
        replaced: plan.replaced.iter().map(|entry| text(entry)).collect(),
        kept: plan.kept.iter().map(kept).collect(),
        ..Farm::default()
    };
    let mut wanted: Vec<(Vec<u8>, PathBuf)> = Vec::new();
    for link in &plan.links {
        if is_name(&link.name) {
            wanted.push((link.name.clone(), place.outside(&link.target)));
        } else {
            farm.left_out.push(text(&link.name));
        }
    }
    let stops: Vec<&Vec<u8>> = plan.stops.iter().filter(|name| is_name(name)).collect();
    let names = wanted.iter().map(|(name, _)| name).chain(stops.iter().copied());
    let names: BTreeSet<Vec<u8>> = names.cloned().collect();
    let old = place.dangling(&before, &names);
    place.list(&before.union(&names).cloned().collect())?;
    for name in before.difference(&names) {
        place.remove(name)?;
        farm.removed += 1;
    }
    for (name, target) in &wanted {
        farm.renewed += u64::from(place.link(name, target)?);
        let target = text(target.as_os_str().as_bytes());
        farm.links.push(FarmLink { name: text(name), target });
    }
    for name in stops {
        // A link to itself is neither a file nor absent: at it, the linker leaves the list (ELOOP).
        farm.renewed += u64::from(place.link(name, Path::new(OsStr::from_bytes(name)))?);
        farm.stops.push(text(name));
    }
    place.write(ENVIRONMENT, &environment(&place.directory, &plan.replaced))?;
    place.list(&names)?;
    farm.dangling = old;
    for (name, target) in wanted.iter().filter(|(_, target)| !target.exists()) {
        farm.dangling.retain(|link| link.name != text(name));
        let target = Some(text(target.as_os_str().as_bytes()));
        let programs = Vec::new();
        farm.dangling.push(DanglingLink { name: text(name), target, now: "dangling", programs });
    }
    for (name, programs) in &plan.gone {
        let programs = programs.iter().map(|program| text(program)).collect();
        let name = text(name);
        match farm.dangling.iter_mut().find(|link| link.name == name) {
            Some(link) => link.programs = programs,
            None => {
                farm.dangling.push(DanglingLink { name, target: None, now: "none", programs });
            }
        }
    }
    farm.dangling.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(farm)
}

/// A directory whose path would be split, or changed, in LD_LIBRARY_PATH is of no use there.
fn refuse_separators(directory: &Path) -> Result<(), FarmError> {
    let bytes = directory.as_os_str().as_bytes();
    match bytes.iter().find(|byte| b":;\n$".contains(byte)) {
        Some(wrong) => {
            Err(FarmError::Separator { directory: text(bytes), wrong: char::from(*wrong) })
        }
        None => Ok(()),
    }
}

/// Returns whether a link may have this name: those in the list and in the directory must be the same.
fn is_name(name: &[u8]) -> bool {
    let reserved =
        [&b""[..], b".", b"..", MARKER.as_bytes(), NEW.as_bytes(), ENVIRONMENT.as_bytes()];
    let foreign = |byte: &u8| *byte == b'/' || byte.is_ascii_control();
    !reserved.contains(&name) && name.len() <= 255 && !name.iter().any(foreign)
}

/// Returns whether the first name is that of a file which was to become the second.
fn is_part_of(name: &[u8], of: &[u8]) -> bool {
    is_part(OsStr::from_bytes(name), OsStr::from_bytes(of))
}

fn text(bytes: &[u8]) -> String {
    to_text(bytes).into_owned()
}

fn kept(kept: &Kept) -> KeptEntry {
    KeptEntry { entry: text(&kept.entry), why: kept.why }
}

fn conflicts(plan: &FarmPlan) -> Vec<FarmConflict> {
    let candidate = |from: &Candidate| FarmCandidate {
        path: text(&from.path),
        starts: from.starts,
        programs: from.programs.iter().map(|program| text(program)).collect(),
    };
    let all = plan.conflicts.iter().map(|conflict| FarmConflict {
        name: text(&conflict.name),
        chosen: candidate(&conflict.chosen),
        lost: conflict.lost.iter().map(candidate).collect(),
    });
    all.collect()
}

/// Script that a shell sources: it puts the directory first, and only once, whatever the list was, and removes the
/// entries that it replaces.
fn environment(directory: &Path, replaced: &[Vec<u8>]) -> Vec<u8> {
    let quoted = shell::quoted(directory.as_os_str().as_bytes());
    let head = b"# Made by `proctrace libs --farm`. To use it, source it in a POSIX shell.\n\
        proctrace_farm=";
    // The colons at both ends let each entry be found as a whole; empty entries stay.
    let removes = br#"
proctrace_rest=":${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}"
for proctrace_entry in "$proctrace_farm""#;
    let rest = br#"
do
    while :; do
        case $proctrace_rest in
            *":$proctrace_entry:"*)
                proctrace_rest="${proctrace_rest%%":$proctrace_entry:"*}:${proctrace_rest#*":$proctrace_entry:"}" ;;
            *) break ;;
        esac
    done
done
case $proctrace_rest in
    :) LD_LIBRARY_PATH=$proctrace_farm ;;
    *) LD_LIBRARY_PATH=$proctrace_farm${proctrace_rest%:} ;;
esac
export LD_LIBRARY_PATH
unset proctrace_farm proctrace_entry proctrace_rest
"#;
    let entries =
        replaced.iter().flat_map(|entry| [b" \\\n    ", &shell::quoted(entry)[..]].concat());
    [head, &quoted[..], removes, &entries.collect::<Vec<u8>>(), rest].concat()
}

/// The directory.
struct FarmDirectory {
    directory: PathBuf,
    open: Directory,
}

impl FarmDirectory {
    fn at(&self, name: impl AsRef<OsStr>) -> PathBuf {
        self.directory.join(name.as_ref())
    }

    fn link_at(&self, name: &[u8]) -> PathBuf {
        self.at(OsStr::from_bytes(name))
    }

    /// The links that were made before.
    ///
    /// Fails if anything else is in the directory.
    fn own(&self) -> Result<BTreeSet<Vec<u8>>, FarmError> {
        let shown = self.directory.display();
        let marker = self.open.read_text(MARKER, MARKER_BYTES_MAX);
        let listed: Option<BTreeSet<Vec<u8>>> = match marker.step("read", &self.at(MARKER))? {
            Some(list) => {
                let mut lines = list.lines();
                if lines.next() != Some(MARKER_HEAD) {
                    return Err(FarmError::Taken(format!("{shown}/{MARKER} is no list of links")));
                }
                Some(lines.map(to_bytes).filter(|name| is_name(name)).collect())
            }
            None => None,
        };
        let mut own = BTreeSet::new();
        let mut left: Vec<Vec<u8>> = Vec::new();
        for entry in fs::read_dir(&self.directory).step("read", &self.directory)? {
            let entry = entry.step("read", &self.directory)?;
            let name = entry.file_name().into_vec();
            let kind = entry.file_type().step("read", &self.directory)?;
            let of_list = listed.as_ref().is_some_and(|listed| listed.contains(&name));
            if of_list && kind.is_symlink() {
                own.insert(name);
                continue;
            }
            let is_left = name == NEW.as_bytes()
                || is_part_of(&name, MARKER.as_bytes())
                || is_part_of(&name, ENVIRONMENT.as_bytes())
                || listed.iter().flatten().any(|of| is_part_of(&name, of));
            if is_left && !kind.is_dir() {
                left.push(name);
                continue;
            }
            let helper =
                listed.is_some() && (name == MARKER.as_bytes() || name == ENVIRONMENT.as_bytes());
            if !helper || kind.is_dir() {
                let name = to_text(&name);
                return Err(FarmError::Taken(format!(
                    "{shown} contains {name}, which `proctrace libs --farm` has not made"
                )));
            }
        }
        for name in left {
            self.clear(OsStr::from_bytes(&name))?;
        }
        Ok(own)
    }

    /// Links of before whose library is gone.
    fn dangling(&self, before: &BTreeSet<Vec<u8>>, names: &BTreeSet<Vec<u8>>) -> Vec<DanglingLink> {
        let leads_on = |name: &&Vec<u8>| {
            // A link to itself was made to lead nowhere.
            !fs::read_link(self.link_at(name)).is_ok_and(|target| target == OsStr::from_bytes(name))
        };
        let gone = before.iter().filter(|name| !self.link_at(name).exists()).filter(leads_on);
        let link = |name: &Vec<u8>| DanglingLink {
            name: text(name),
            target: fs::read_link(self.link_at(name))
                .map(|target| text(target.as_os_str().as_bytes()))
                .ok(),
            now: if names.contains(name) { "replaced" } else { "removed" },
            programs: Vec::new(),
        };
        gone.map(link).collect()
    }

    /// A recording that was made with this directory in place of others does not tell what is in those.
    fn refuse_itself(&self, plan: &FarmPlan) -> Result<(), FarmError> {
        let own = self.directory.canonicalize().ok();
        let mut replaced = plan.replaced.iter().map(|entry| Path::new(OsStr::from_bytes(entry)));
        match replaced.any(|entry| own.is_some() && entry.canonicalize().ok() == own) {
            true => Err(FarmError::Itself(self.directory.display().to_string())),
            false => Ok(()),
        }
    }

    /// The library itself, if a recording that was made with this directory found it here: a link must
    /// not lead to itself.
    fn outside(&self, target: &[u8]) -> PathBuf {
        let target = PathBuf::from(OsStr::from_bytes(target));
        let parent = target.parent().and_then(|parent| parent.canonicalize().ok());
        if parent.is_none() || parent != self.directory.canonicalize().ok() {
            return target;
        }
        fs::read_link(&target).map(|inner| self.directory.join(inner)).unwrap_or(target)
    }

    /// Makes a link, unless it is there; whether it was not.
    fn link(&self, name: &[u8], target: &Path) -> Result<bool, FarmError> {
        let link = self.link_at(name);
        if fs::read_link(&link).is_ok_and(|known| known == target) {
            return Ok(false);
        }
        self.open.symlink(target, OsStr::from_bytes(name)).step("create", &link)?;
        Ok(true)
    }

    fn remove(&self, name: &[u8]) -> Result<(), FarmError> {
        self.open.remove(OsStr::from_bytes(name)).step("remove", &self.link_at(name))
    }

    /// Writes the list of links.
    fn list(&self, names: &BTreeSet<Vec<u8>>) -> Result<(), FarmError> {
        let names = names.iter().map(|name| text(name) + "\n");
        let list = format!("{MARKER_HEAD}\n{}", names.collect::<String>());
        self.write(MARKER, list.as_bytes())
    }

    /// Writes a file at once, unless it is the same already.
    fn write(&self, name: &str, content: &[u8]) -> Result<(), FarmError> {
        let path = self.at(name);
        if fs::read(&path).is_ok_and(|known| known == content) {
            return Ok(());
        }
        self.open.write(name, Access::Umask, content).step("write", &path)
    }

    /// Removes what an interrupted attempt left.
    fn clear(&self, left: &OsStr) -> Result<(), FarmError> {
        match self.open.remove(left) {
            Err(OutputError::Io(error)) if error.kind() == ErrorKind::NotFound => Ok(()),
            removed => removed.step("remove", &self.at(left)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proctrace_analysis::Link;

    fn plan(names: &[&str], target: &Path) -> FarmPlan {
        let target = target.as_os_str().as_bytes();
        let link = |name: &&str| Link { name: name.as_bytes().to_vec(), target: target.to_vec() };
        FarmPlan { links: names.iter().map(link).collect(), ..FarmPlan::default() }
    }

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_farm_is_renewed_and_nothing_else_is_touched() {
        let scratch = tempfile::tempdir().unwrap();
        let (library, place) = (scratch.path().join("liba.so"), scratch.path().join("farm"));
        fs::write(&library, "").unwrap();
        let outputs = Outputs::of_this_process();
        let make = |names: &[&str]| make_farm(&outputs, &place, "farm", &plan(names, &library));
        let made = make(&["liba.so.1", "libb.so.1", ".proctrace-farm", "a/b"]).unwrap();
        assert_eq!((made.renewed, made.removed, made.links.len()), (2, 0, 2));
        assert_eq!(made.left_out, [".proctrace-farm", "a/b"]);
        assert_eq!(names(&place), [".proctrace-farm", "env.sh", "liba.so.1", "libb.so.1"]);
        let again = make(&["liba.so.1"]).unwrap();
        assert_eq!((again.renewed, again.removed), (0, 1));
        assert_eq!(fs::read_link(place.join("liba.so.1")).unwrap(), library);
        fs::write(place.join("notes"), "mine").unwrap();
        let error = make(&["liba.so.1"]).unwrap_err().to_string();
        assert!(error.contains("contains notes, which"), "{error}");
        assert_eq!(fs::read_to_string(place.join("notes")).unwrap(), "mine");
    }

    #[test]
    fn what_cannot_be_a_farm_is_refused() {
        let scratch = tempfile::tempdir().unwrap();
        let outputs = Outputs::of_this_process();
        let make = |name: &str, plan: &FarmPlan| {
            make_farm(&outputs, &scratch.path().join(name), "farm", plan)
        };
        let some = plan(&["liba.so.1"], Path::new("/lib/liba.so"));
        assert!(matches!(make("a:b", &some), Err(FarmError::Separator { wrong: ':', .. })));
        assert!(matches!(make("empty", &plan(&[], Path::new(""))), Err(FarmError::Nothing)));
        fs::create_dir(scratch.path().join("other")).unwrap();
        fs::write(scratch.path().join("other").join(MARKER), "something else").unwrap();
        let error = make("other", &some).unwrap_err().to_string();
        assert!(error.contains("is no list of links: choose"), "{error}");
    }
}
