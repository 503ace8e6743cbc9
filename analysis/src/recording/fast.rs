//! Maps for keys that are looked up ten million times.

use std::collections::HashMap;

/// A map whose hash costs a third of the standard library's. It has a random seed, so that a
/// hostile trace cannot choose keys that collide.
pub(crate) type FastMap<K, V> = HashMap<K, V, foldhash::fast::RandomState>;
