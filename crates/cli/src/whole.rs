//! Files that are written whole or not at all.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use proctrace_report::PictureFormat;

use crate::exit_code::Misuse;

/// Writes a file; on a full disk, what was written of it is removed.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let context = || format!("cannot write {}", path.display());
    let mut file = File::create(path).with_context(context)?;
    file.write_all(bytes).inspect_err(|_| discard(path)).with_context(context)
}

/// Removes what was written of a file, but nothing that is no file, such as /dev/full.
pub(crate) fn discard(path: &Path) {
    if fs::metadata(path).is_ok_and(|it| it.is_file()) {
        // The error that led here is reported.
        let _ = fs::remove_file(path);
    }
}

/// The format of a chart, by the name of its file.
///
/// # Errors
/// If the name asks for another one.
pub(crate) fn picture_format(path: &Path) -> Result<PictureFormat> {
    PictureFormat::of(path).ok_or_else(|| {
        let why = format!(
            "cannot write {}: charts are written as SVG or PNG, to files that end in .svg or .png",
            path.display()
        );
        Misuse(why).into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_half_written_remains() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("chart.svg");
        write(&path, b"all of it").unwrap();
        discard(&path);
        assert!(!path.exists());
        let full = Path::new("/dev/full");
        assert!(write(full, b"any of it").is_err() && full.exists());
        assert!(write(&directory.path().join("no/chart.svg"), b"").is_err());
    }
}
