//! Usage of the recorder for one of several jobs.

use proctrace_trace::RecorderUsage;

/// The recorder's own usage and its work at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Moment {
    pub(crate) user_ns: u64,
    pub(crate) system_ns: u64,
    /// Bytes of records of all jobs so far.
    pub(crate) bytes: u64,
}

/// An estimate of what a job cost the recorder: of what it used meanwhile, the share of its records.
pub(crate) fn share(from: Moment, to: Moment, own_bytes: u64, maxrss_bytes: u64) -> RecorderUsage {
    let all = to.bytes.saturating_sub(from.bytes).max(own_bytes);
    let of = |used: u64| match all {
        0 => 0,
        all => u64::try_from(u128::from(used) * u128::from(own_bytes) / u128::from(all))
            .unwrap_or(u64::MAX),
    };
    RecorderUsage {
        user_ns: of(to.user_ns.saturating_sub(from.user_ns)),
        system_ns: of(to.system_ns.saturating_sub(from.system_ns)),
        maxrss_bytes,
        loading_ns: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_is_shared_by_bytes() {
        let from = Moment { user_ns: 100, system_ns: 50, bytes: 1000 };
        let to = Moment { user_ns: 300, system_ns: 150, bytes: 5000 };
        let shared = share(from, to, 1000, 7);
        assert_eq!((shared.user_ns, shared.system_ns, shared.maxrss_bytes), (50, 25, 7));
        assert_eq!(share(to, from, 0, 0), RecorderUsage::default());
        assert_eq!(share(from, from, u64::MAX, 0).user_ns, 0);
    }
}
