//! Files that are written whole or not at all.

use std::io::BufWriter;
use std::path::Path;

use anyhow::{Context, Result};
use proctrace_outputs::{Access, NewFile, Specials};
use proctrace_report::PictureFormat;

use crate::exit_code::Misuse;
use crate::invoker;

/// Writes a file that the user has named, readable as the umask says.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    invoker::outputs()
        .write(path, Access::Umask, Specials::Asked, bytes)
        .with_context(|| format!("cannot write {}", path.display()))
}

/// Begins a file that the user has named, readable only by its owner, like a trace: arguments and environments
/// contain secrets.
pub(crate) fn private(path: &Path) -> Result<BufWriter<NewFile>> {
    let new = invoker::outputs().create(path, Access::Owner, Specials::Asked);
    let new = new.with_context(|| format!("cannot write {}", path.display()))?;
    Ok(BufWriter::with_capacity(1 << 18, new))
}

/// Writes such a file, which gets its name when it is complete. What is no regular file is written directly.
pub(crate) fn fill<T>(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<NewFile>) -> Result<T>,
) -> Result<T> {
    let mut out = private(path)?;
    let written = write(&mut out).and_then(|written| commit(out).map(|()| written));
    written.with_context(|| format!("cannot write {}", path.display()))
}

/// Completes a file. Without that, nothing remains of it.
pub(crate) fn commit(file: BufWriter<NewFile>) -> Result<()> {
    let file = file.into_inner().map_err(|error| error.into_error())?;
    file.commit()?;
    Ok(())
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
    use std::io::Write;

    use super::*;

    #[test]
    fn nothing_half_written_remains() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("chart.svg");
        write(&path, b"all of it").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"all of it");
        let mut half = private(&path).unwrap();
        half.write_all(b"half of it").unwrap();
        half.flush().unwrap();
        drop(half);
        assert_eq!(std::fs::read(&path).unwrap(), b"all of it");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
        let full = Path::new("/dev/full");
        assert!(write(full, b"any of it").is_err() && full.exists());
        assert!(write(&directory.path().join("no/chart.svg"), b"").is_err());
    }
}
