//! The user ids of a user namespace, as /proc/PID/uid_map tells them, which all may read.

/// Returns true if a user id of the reader's namespace is 0 in the namespace of this map: there it is root.
#[must_use]
pub fn is_root_by(uid_map: &str, uid: u32) -> bool {
    uid_map.lines().any(|line| {
        let mut numbers = line.split_whitespace().map(str::parse::<u64>);
        // The inner number, the one outside, and how many follow each other.
        let (Some(Ok(0)), Some(Ok(outside)), Some(Ok(count))) =
            (numbers.next(), numbers.next(), numbers.next())
        else {
            return false;
        };
        count > 0 && outside == u64::from(uid)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn root_is_who_is_0_inside() {
        let initial = "         0          0 4294967295\n";
        assert!(is_root_by(initial, 0) && !is_root_by(initial, 1000));
        let rootless = "         0       1000          1\n         1     100000      65536\n";
        assert!(is_root_by(rootless, 1000));
        assert!(!is_root_by(rootless, 100_000) && !is_root_by(rootless, 0));
        assert!(!is_root_by("         0       1000          0\n", 1000));
        assert!(!is_root_by("", 0));
    }

    proptest! {
        #[test]
        fn any_text_is_read(text: String, uid: u32) {
            let _ = is_root_by(&text, uid);
        }
    }
}
