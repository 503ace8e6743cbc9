//! Keyed hashes: the user of a job.

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

/// Bytes of the hash that are kept: of a million users, two have the same with a probability of 10^-17.
const KEPT_BYTES: usize = 12;
/// A shorter key could be guessed together with the names of users.
pub const KEY_BYTES_MIN: usize = 16;

/// The hash of a user's name, by HMAC-SHA-256: who lacks the key can neither reverse nor test it.
pub fn user_hash(key: &[u8], user: &str) -> String {
    let mac = mac(key, user.as_bytes());
    mac.iter().take(KEPT_BYTES).map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn mac(key: &[u8], text: &[u8]) -> [u8; 32] {
    let keyed = Hmac::<Sha256>::new_from_slice(key).expect("a key of any length will do");
    keyed.chain_update(text).finalize().into_bytes().into()
}

/// A number for what identifies a job, as text.
pub(crate) fn fingerprint(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        // With its length, so that no two lists are the same bytes.
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn hmac_is_that_of_rfc_4231() {
        let jefe = mac(b"Jefe", b"what do ya want for nothing?");
        assert_eq!(hex(&jefe), "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
        let long = mac(&[0xaa; 131], b"Test Using Larger Than Block-Size Key - Hash Key First");
        assert_eq!(hex(&long), "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
    }

    #[test]
    fn users_differ_and_so_do_keys() {
        let of = |key: &str, user: &str| user_hash(key.as_bytes(), user);
        assert_eq!(of("a key of sixteen", "ann"), of("a key of sixteen", "ann"));
        assert_ne!(of("a key of sixteen", "ann"), of("a key of sixteen", "bob"));
        assert_ne!(of("a key of sixteen", "ann"), of("another key here", "ann"));
        assert_ne!(fingerprint(&["ab", "c"]), fingerprint(&["a", "bc"]));
    }
}
