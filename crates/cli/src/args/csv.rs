//! How CSV is written, by all commands that write it.

use clap::{Args, ValueEnum};
use proctrace_report::CsvDialect;

/// How lines of CSV end.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct CsvArgs {
    /// How lines of CSV end.
    #[arg(
        long,
        value_enum,
        value_name = "DIALECT",
        default_value = "unix",
        hide_short_help = true
    )]
    csv_dialect: Dialect,
}

impl CsvArgs {
    pub(crate) fn dialect(self) -> CsvDialect {
        match self.csv_dialect {
            Dialect::Unix => CsvDialect::Unix,
            Dialect::Rfc4180 => CsvDialect::Rfc4180,
        }
    }
}

/// How lines of CSV end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Dialect {
    /// With LF.
    Unix,
    /// With CR LF.
    Rfc4180,
}
