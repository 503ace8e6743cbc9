//! Model of the dynamic linker's search for libraries: which paths a program's start looks up, in which order, and
//! because of which list of directories.
//!
//! [`search`] is a pure function of a program, its environment and a view of the files ([`Files`]). It
//! follows `_dl_map_object`, `open_path` and `fillin_rpath` of glibc's elf/dl-load.c, and `load_library`
//! of musl's ldso/dynlink.c for programs that are linked with it. Tests compare it with what strace sees
//! of the real linkers, look-up by look-up.
//!
//! Where there are no files, or for look-ups that no start makes, [`Sought`] is what the call and the path alone tell:
//! reports, advice and the model ask the same.
//!
//! All input may be hostile: ELF files and caches are parsed with bounds ([`Elf::parse`],
//! [`Cache::parse`]), symbolic links are followed a limited number of times, FIFOs and devices are not opened, and a search
//! ends after [`PROBES_MAX`] look-ups or 128 MiB of paths.
//!
//! Not modelled: `ld.so PROGRAM`, /etc/ld.so.preload, LD_AUDIT, programs for 32 bits on a system for 64,
//! other permissions than those of the process that asks, and set-user-ID libraries that a secure start
//! preloads.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod cache;
mod capabilities;
mod elf;
mod files;
mod glibc;
mod list;
mod lookups;
mod musl;
mod objects;
mod search;
mod sought;
mod start;

pub use cache::{Cache, CacheError};
pub use capabilities::{Capabilities, Linker, list_directory};
pub use elf::{Elf, ElfError};
pub use files::{Files, Found, Identity, Root};
pub use list::{Tokens, has_origin, own_directories};
pub use search::{Cause, LinkerCall, PROBES_MAX, Probe, Program, Search, Unmodelled};
pub use sought::{Sought, is_library, is_searched_by_default, is_searched_last};
pub use start::{search, search_later, search_on};
