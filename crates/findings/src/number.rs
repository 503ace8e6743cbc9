//! Counts as people read them, in tables and in notes.

/// 72500 as 72,500.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A count and its noun: "1 process", "2 processes".
pub fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_stand_apart_and_one_is_singular() {
        assert_eq!(count(72_500), "72,500");
        assert_eq!(counted(1, "process", "processes"), "1 process");
        assert_eq!(counted(1_234_567, "bin", "bins"), "1,234,567 bins");
    }
}
