//! What the kernel tells of its own policies on BPF programs: lockdown, and security modules that may refuse them.

use std::fs;

use super::Check;

/// Modules with a say in which BPF programs are loaded: SELinux by its class `bpf`, the others by signatures of programs or by
/// programs of the site.
const MODULES: [&str; 4] = ["selinux", "bpf", "ipe", "hornet"];

/// The checks of what can be read; a policy itself cannot, and is tried by loading.
pub(super) fn checks() -> Vec<Check> {
    let text = |file: &str| fs::read_to_string(format!("/sys/kernel/security/{file}")).ok();
    let (mode, modules) = (text("lockdown"), text("lsm"));
    let mut checks = vec![lockdown(mode.as_deref(), modules.as_deref())];
    checks.extend(modules.as_deref().and_then(signatures));
    checks
}

/// The mode in brackets in the file `lockdown`; without that file, the list in `lsm` says if there is no such module.
fn lockdown(mode: Option<&str>, modules: Option<&str>) -> Check {
    const NAME: &str = "lockdown";
    let is_on =
        |wanted: &str| mode.is_some_and(|mode| mode.split_whitespace().any(|word| word == wanted));
    if is_on("[confidentiality]") {
        Check::bad(
            NAME,
            "confidentiality: BPF programs may not read kernel\nmemory",
            "boot with lockdown=integrity, or none",
        )
    } else if is_on("[integrity]") {
        Check::good(
            NAME,
            "integrity: BPF programs may read kernel memory,\nand recording needs no more",
        )
    } else if is_on("[none]") || modules.is_some() {
        Check::good(NAME, "none")
    } else {
        Check::note(
            NAME,
            "not known: /sys/kernel/security cannot be read here",
            "the attempts below tell whether it refuses programs",
        )
    }
}

/// The modules of the list in `lsm` that may refuse programs, where there are any.
fn signatures(modules: &str) -> Option<Check> {
    let there: Vec<_> =
        modules.trim().split(',').filter(|module| MODULES.contains(module)).collect();
    (!there.is_empty()).then(|| {
        let there = there.join(", ");
        Check::good(
            "policies on BPF",
            format!(
                "may be those of {there}: ours are loaded\n\
                 without a signature, so one that asks for it refuses\n\
                 them; the attempts below tell if one does"
            ),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::super::Verdict;
    use super::{lockdown, signatures};

    #[test]
    fn lockdown_is_what_stands_in_brackets() {
        let of = |mode, modules| {
            let check = lockdown(mode, modules);
            let found = check.found.split([':', '\n']).next().unwrap_or_default().to_owned();
            (check.verdict, found)
        };
        let good = |found: &str| (Verdict::Good, found.to_owned());
        assert_eq!(of(Some("[none] integrity confidentiality\n"), None), good("none"));
        assert_eq!(of(Some("none [integrity] confidentiality\n"), None), good("integrity"));
        let (verdict, found) = of(Some("none integrity [confidentiality]\n"), Some("lockdown,bpf"));
        assert_eq!((verdict, found.as_str()), (Verdict::Bad, "confidentiality"));
        // A kernel without lockdown, and a place where nothing is shown.
        assert_eq!(of(None, Some("capability,yama\n")), good("none"));
        let (verdict, found) = of(None, None);
        assert!(verdict == Verdict::Note && found.starts_with("not known"), "{found}");
    }

    #[test]
    fn modules_that_may_refuse_programs_are_named() {
        assert_eq!(signatures("capability,landlock,yama,apparmor\n"), None);
        let check = signatures("lockdown,capability,selinux,bpf,ipe\n");
        assert!(check.is_some_and(|check| check.found.contains("selinux, bpf, ipe: ")));
        // Names are compared whole.
        assert_eq!(signatures("bpfilter"), None);
    }
}
