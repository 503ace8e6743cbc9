//! Numbers in the text of strace, and pids with the names that may follow them.

/// Upper bound of pids: PID_MAX_LIMIT of the kernel.
const PID_MAX: u64 = 1 << 22;

/// The number at the start, and what follows.
pub(crate) fn decimal(text: &[u8]) -> Option<(&[u8], u64)> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if !(1..=18).contains(&digits) {
        return None;
    }
    let (number, rest) = text.split_at(digits);
    Some((rest, number.iter().fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0'))))
}

/// `--decode-pids=comm` prints names after pids: `123<sh>`.
pub(crate) fn after_comm(rest: &[u8]) -> &[u8] {
    if !rest.starts_with(b"<") {
        return rest;
    }
    let end = rest.iter().position(|byte| *byte == b'>');
    end.and_then(|end| rest.get(end + 1..)).unwrap_or(rest)
}

/// A number as a pid.
pub(crate) fn id(number: u64) -> Option<i32> {
    i32::try_from(number).ok().filter(|pid| *pid > 0 && number <= PID_MAX)
}
