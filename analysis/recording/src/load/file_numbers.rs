//! Numbers of files, by path: as many as are told apart.

use proctrace_classify::fast::FastMap;

/// Files that are told apart; opens of others are only counted.
const FILES_MAX: usize = 1 << 20;

/// Numbers of files, by path.
pub(super) type Numbers = FastMap<Vec<u8>, u32>;

/// The number of the file with this path; `None` if it is not told apart.
pub(super) fn number_of(numbers: &mut Numbers, path: &[u8]) -> Option<u32> {
    if let Some(number) = numbers.get(path) {
        return Some(*number);
    }
    // Fits: smaller than `FILES_MAX`.
    let number = (numbers.len() < FILES_MAX).then_some(numbers.len() as u32)?;
    numbers.insert(path.to_vec(), number);
    Some(number)
}
