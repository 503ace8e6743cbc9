//! What a recording can be told.

use std::time::Duration;

/// How a tree is recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Pause between two passes of samples.
    pub interval: Duration,
    /// Bytes of each of the two ring buffers: a power of two, at least a page.
    pub ring_bytes: u32,
    /// Environment variables to keep at every exec; names of at most [`ENV_NAME_MAX`] bytes.
    pub env_names: Vec<String>,
    /// What to wait for.
    pub wait: Wait,
    /// How long to go on after the command has exited while descendants are still running.
    pub grace: Duration,
}

/// The longest name of an environment variable that can be asked for.
pub const ENV_NAME_MAX: usize = 31;

/// As many environment variables can be asked for.
pub const ENV_NAMES_MAX: usize = 32;

/// When a recording is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// When the last task of the tree has exited, or the grace is over.
    Tree,
    /// When the command has exited.
    Root,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            interval: Duration::from_millis(100),
            ring_bytes: 16 << 20,
            env_names: ["PATH", "LD_LIBRARY_PATH", "LD_PRELOAD", "PYTHONPATH", "ROOTSYS"]
                .map(String::from)
                .to_vec(),
            wait: Wait::Tree,
            grace: Duration::from_secs(5),
        }
    }
}
