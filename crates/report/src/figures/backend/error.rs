//! Errors of figures as PNG.

use thiserror::Error;

/// Errors of drawing a figure as PNG.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PngError {
    /// The bitmap would take too much memory.
    #[error("the figure is too large for PNG: {0} × {1} pixels; choose SVG")]
    TooLarge(u32, u32),
    /// plotters could not draw.
    #[error("cannot draw the figure: {0}")]
    Drawing(String),
    /// The font that is built in is damaged.
    #[error("the built-in font is damaged")]
    Font,
    /// The bitmap could not be encoded.
    #[error("cannot encode the figure as PNG")]
    Encoding(#[from] png::EncodingError),
}
