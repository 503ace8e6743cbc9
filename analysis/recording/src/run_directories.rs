//! The working directories in which programs were run, if opens are recorded.

use std::sync::Arc;

use proctrace_classify::fast::FastMap;

/// Length of all directories that are kept.
const BYTES_MAX: usize = 16 << 20;
const NONE: u32 = u32::MAX;

/// The directory of each program run; those at the end may be missing.
#[derive(Debug, Default)]
pub struct RunDirectories {
    numbers: FastMap<Arc<[u8]>, u32>,
    names: Vec<Arc<[u8]>>,
    of_run: Vec<u32>,
    bytes: usize,
}

impl RunDirectories {
    /// The next run.
    pub(crate) fn add(&mut self, cwd: &[u8]) {
        let number = match self.numbers.get(cwd) {
            Some(number) => *number,
            None => self.new_number(cwd),
        };
        self.of_run.push(number);
    }

    fn new_number(&mut self, cwd: &[u8]) -> u32 {
        self.bytes = self.bytes.saturating_add(cwd.len() + size_of::<(Arc<[u8]>, u32)>());
        if self.bytes > BYTES_MAX || !cwd.starts_with(b"/") {
            return NONE;
        }
        // Fits: there are fewer than bytes.
        let number = self.names.len() as u32;
        let name: Arc<[u8]> = cwd.into();
        self.numbers.insert(Arc::clone(&name), number);
        self.names.push(name);
        number
    }

    /// The directory of a run; `None` if it is not known.
    pub fn of(&self, run: u32) -> Option<&[u8]> {
        let number = *self.of_run.get(run as usize)?;
        self.names.get(number as usize).map(|name| &**name)
    }
}
