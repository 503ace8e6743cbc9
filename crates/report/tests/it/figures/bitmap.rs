//! A picture as a bitmap, compared with the same picture as SVG.

use std::collections::BTreeSet;
use std::io::Cursor;

use super::structure::Picture;

/// The pixels of a PNG.
pub(crate) struct Bitmap {
    width: usize,
    height: usize,
    rgb: Vec<u8>,
}

impl Bitmap {
    /// Decodes a file; panics if it is not a PNG of three bytes per pixel.
    pub(crate) fn decode(bytes: &[u8]) -> Self {
        let mut reader = png::Decoder::new(Cursor::new(bytes)).read_info().expect("a PNG");
        let mut rgb = vec![0; reader.output_buffer_size().expect("a size")];
        let info = reader.next_frame(&mut rgb).expect("all of it");
        assert_eq!((info.color_type, info.bit_depth), (png::ColorType::Rgb, png::BitDepth::Eight));
        Self { width: info.width as usize, height: info.height as usize, rgb }
    }

    fn at(&self, x: usize, y: usize) -> [u8; 3] {
        let at = (y * self.width + x) * 3;
        [self.rgb[at], self.rgb[at + 1], self.rgb[at + 2]]
    }

    /// Asserts that each text of the SVG is where the SVG has it, and nothing at the edges.
    pub(crate) fn shows(&self, name: &str, svg: &Picture) {
        let scale = self.width as f64 / svg.size().0;
        let height = (svg.size().1 * scale) as usize;
        assert!(self.height.abs_diff(height) <= 2, "{name}: {} instead of {height}", self.height);
        let colours: BTreeSet<[u8; 3]> =
            (0..self.rgb.len() / 3).map(|at| self.at(at % self.width, at / self.width)).collect();
        assert!(colours.len() > 10, "{name}: {} colours", colours.len());
        for y in 0..self.height {
            assert_eq!([self.at(0, y), self.at(self.width - 1, y)], [[0xff; 3]; 2], "{name}: {y}");
        }
        for (text, edges) in svg.boxes().filter(|(text, _)| *text != "–") {
            let [left, top, right, bottom] = edges.map(|edge| (edge * scale).max(0.0) as usize);
            let inside = (top..bottom.min(self.height))
                .flat_map(|y| (left..right.min(self.width)).map(move |x| (x, y)));
            let colours: BTreeSet<[u8; 3]> = inside.map(|(x, y)| self.at(x, y)).collect();
            // Letters have soft edges, so there are many colours.
            assert!(colours.len() > 4, "{name}: {text:?} is not in {edges:?}: {colours:?}");
        }
    }
}
