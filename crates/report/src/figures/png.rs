//! Figures as PNG.

use std::cell::RefCell;
use std::rc::Rc;

use super::backend::PngError;
use super::backend::bitmap::Bitmap;
use super::backend::svg::Svg;
use super::backend::{Drawn, Size, Surface};

/// Pixels of the bitmap per pixel of the figure: enough for print at the usual sizes.
const DENSITY: u32 = 2;
/// The largest bitmap, in pixels, which bounds the memory: three bytes per pixel. Figures that
/// would be larger get fewer pixels.
const PIXELS_MAX: f64 = 40e6;
/// Pixels per metre of a bitmap whose pixels are those of the figure: 96 per inch.
const PER_METRE: f64 = 96.0 / 0.0254;

/// A figure, drawn on a backend of any kind.
pub(super) trait Figure {
    fn draw<S: Surface>(&self, canvas: &Rc<RefCell<S>>) -> Drawn<Size>;
}

/// The bytes of a PNG file.
pub(super) fn of(figure: &impl Figure) -> Result<Vec<u8>, PngError> {
    let drawing = |error: &dyn std::error::Error| PngError::Drawing(error.to_string());
    // The height of a figure is known when it is drawn. As SVG that takes little time and memory.
    let size = figure.draw(&Rc::new(RefCell::new(Svg::default()))).map_err(|e| drawing(&e))?;
    let density = (f64::from(DENSITY)).min((PIXELS_MAX / (size.width * size.height)).sqrt());
    let pixels = |length: f64| (length * density).ceil().clamp(1.0, f64::from(u32::MAX)) as u32;
    let (width, height) = (pixels(size.width), pixels(size.height));
    // With fewer pixels text could not be read.
    if density < 0.75 {
        return Err(PngError::TooLarge(size.width.ceil() as u32, size.height.ceil() as u32));
    }
    let mut buffer = vec![0xff; width as usize * height as usize * 3];
    let canvas = Rc::new(RefCell::new(Bitmap::new(&mut buffer, (width, height), density)?));
    figure.draw(&canvas).map_err(|error| drawing(&error))?;
    drop(canvas);
    encoded(&buffer, (width, height), density)
}

fn encoded(rgb: &[u8], (width, height): (u32, u32), density: f64) -> Result<Vec<u8>, PngError> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let per_metre = (PER_METRE * density).round() as u32;
    encoder.set_pixel_dims(Some(png::PixelDimensions {
        xppu: per_metre,
        yppu: per_metre,
        unit: png::Unit::Meter,
    }));
    let mut writer = encoder.write_header()?;
    writer.write_image_data(rgb)?;
    writer.finish()?;
    Ok(bytes)
}
