//! A picture as rendered by a viewer: its texts and their positions.

use proctrace_report::figures::extent::Font;

/// A text and its bounding box, both rotated about the anchor point.
#[derive(Debug, Clone)]
struct Label {
    text: String,
    turned: f64,
    /// Left, right, top and bottom, before rotation.
    corners: [(f64, f64); 4],
}

/// The contents of an SVG.
pub(crate) struct Picture {
    pub(crate) elements: Vec<String>,
    width: f64,
    height: f64,
    labels: Vec<Label>,
    /// Corners of all other shapes, and their centre if they are round.
    places: Vec<(f64, f64)>,
}

impl Picture {
    /// Parses a picture; panics if it is not well-formed.
    pub(crate) fn parse(svg: &str) -> Self {
        let document = roxmltree::Document::parse(svg).expect("well-formed XML");
        let number = |node: &roxmltree::Node<'_, '_>, name: &str| -> f64 {
            node.attribute(name).map_or(0.0, |text| text.parse().expect("a number"))
        };
        let root = document.root_element();
        // Coordinates are those of the viewBox, as for any viewer.
        let view_box = root.attribute("viewBox").expect("a viewBox");
        let view_box: Vec<f64> =
            view_box.split(' ').map(|part| part.parse().expect("a number")).collect();
        let per_pixel = view_box[2] / number(&root, "width");
        assert_eq!(&view_box[..2], [0.0, 0.0]);
        assert_eq!(view_box[3] / number(&root, "height"), per_pixel, "not stretched");
        let length = |node: &roxmltree::Node<'_, '_>, name: &str| number(node, name) / per_pixel;
        let labels = document
            .descendants()
            .filter(|node| node.has_tag_name("text"))
            .map(|node| {
                let text = node.text().unwrap_or("").to_owned();
                let size = length(&node, "font-size");
                assert!(size >= 10.0, "{text:?} is too small to read");
                let bold = node.attribute("font-weight") == Some("bold");
                let width = if bold { Font::bold(size) } else { Font::regular(size) }.width(&text);
                let (x, y) = (length(&node, "x"), length(&node, "y"));
                let left = match node.attribute("text-anchor") {
                    None => x,
                    Some("middle") => x - width / 2.0,
                    Some(_) => x - width,
                };
                let turned = node.attribute("transform").map_or(0.0, |transform| {
                    let inside = transform.trim_start_matches("rotate(");
                    inside.split(' ').next().and_then(|text| text.parse().ok()).expect("an angle")
                });
                let (top, bottom) = (y - size * 0.74, y + size * 0.2);
                let (sin, cos) = f64::to_radians(turned).sin_cos();
                let turn = |(px, py): (f64, f64)| {
                    let (dx, dy) = (px - x, py - y);
                    (x + dx * cos - dy * sin, y + dx * sin + dy * cos)
                };
                let right = left + width;
                let corners =
                    [(left, top), (right, top), (right, bottom), (left, bottom)].map(turn);
                Label { text, turned, corners }
            })
            .filter(|label| !label.text.is_empty())
            .collect();
        Self {
            elements: document
                .descendants()
                .filter(roxmltree::Node::is_element)
                .map(|node| node.tag_name().name().to_owned())
                .collect(),
            width: number(&root, "width"),
            height: number(&root, "height"),
            labels,
            places: document
                .descendants()
                .flat_map(|node| match node.tag_name().name() {
                    "rect" => {
                        let (x, y) = (number(&node, "x"), number(&node, "y"));
                        vec![(x, y), (x + number(&node, "width"), y + number(&node, "height"))]
                    }
                    "circle" => vec![(number(&node, "cx"), number(&node, "cy"))],
                    "path" => corners(node.attribute("d").expect("path data")),
                    _ => Vec::new(),
                })
                .map(|(x, y)| (x / per_pixel, y / per_pixel))
                .collect(),
        }
    }

    /// Width and height in pixels.
    pub(crate) fn size(&self) -> (f64, f64) {
        (self.width, self.height)
    }

    /// Each text with its left, top, right and bottom edge.
    pub(crate) fn boxes(&self) -> impl Iterator<Item = (&str, [f64; 4])> {
        self.labels.iter().map(|label| {
            let x = label.corners.iter().map(|corner| corner.0);
            let y = label.corners.iter().map(|corner| corner.1);
            let edges = [
                x.clone().fold(f64::INFINITY, f64::min),
                y.clone().fold(f64::INFINITY, f64::min),
                x.fold(f64::NEG_INFINITY, f64::max),
                y.fold(f64::NEG_INFINITY, f64::max),
            ];
            (&*label.text, edges)
        })
    }

    pub(crate) fn texts(&self) -> Vec<&str> {
        self.labels.iter().map(|label| &*label.text).collect()
    }

    /// True if this text occurs as a whole.
    pub(crate) fn says(&self, text: &str) -> bool {
        self.labels.iter().any(|label| label.text == text)
    }

    /// True if this text occurs, possibly wrapped into lines.
    pub(crate) fn says_in_lines(&self, text: &str) -> bool {
        self.texts().join(" ").contains(text)
    }

    pub(crate) fn nothing_sticks_out(&self, name: &str) {
        for (x, y) in &self.places {
            let inside = (0.0..=self.width).contains(x) && (0.0..=self.height).contains(y);
            assert!(inside, "{name}: a shape reaches ({x}, {y}), outside of the picture");
        }
        for label in &self.labels {
            for (x, y) in label.corners {
                let inside = (0.0..=self.width).contains(&x) && (0.0..=self.height).contains(&y);
                assert!(
                    inside,
                    "{name}: {:?} reaches ({x}, {y}), outside of the picture",
                    label.text
                );
            }
        }
    }

    pub(crate) fn nothing_overlaps(&self, name: &str) {
        for (at, a) in self.labels.iter().enumerate() {
            for b in &self.labels[at + 1..] {
                assert!(!overlap(a, b), "{name}: {a:?} and {b:?} overlap");
            }
        }
    }
}

/// The corners of a path of straight lines in relative coordinates, from the upper left corner.
fn corners(path: &str) -> Vec<(f64, f64)> {
    let mut corners = Vec::new();
    let (mut at, mut start) = ((0.0, 0.0), (0.0, 0.0));
    let mut rest = path;
    while let Some(command) = rest.chars().next() {
        let end = rest[1..].find(|c: char| c.is_ascii_alphabetic()).map_or(rest.len(), |at| at + 1);
        let spaced = rest[1..end].replace('-', " -");
        let numbers: Vec<f64> =
            spaced.split_whitespace().map(|text| text.parse().expect("a number")).collect();
        match (command, &*numbers) {
            ('h', [dx]) => at.0 += dx,
            ('v', [dy]) => at.1 += dy,
            ('z', []) => at = start,
            ('m', [dx, dy]) => {
                at = (at.0 + dx, at.1 + dy);
                start = at;
            }
            ('l', pairs) if pairs.len() % 2 == 0 => {
                for pair in pairs.chunks(2) {
                    corners.push(at);
                    at = (at.0 + pair[0], at.1 + pair[1]);
                }
            }
            _ => panic!("{command:?} with {numbers:?} in {path:?}"),
        }
        corners.push(at);
        rest = &rest[end..];
    }
    corners
}

/// True if two boxes overlap, by the separating axis test on their four directions.
fn overlap(a: &Label, b: &Label) -> bool {
    [a.turned, a.turned + 90.0, b.turned, b.turned + 90.0].iter().all(|degrees| {
        let (sin, cos) = degrees.to_radians().sin_cos();
        let range = |label: &Label| {
            let places = label.corners.map(|(x, y)| x * cos + y * sin);
            (
                places.iter().copied().fold(f64::INFINITY, f64::min),
                places.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            )
        };
        let ((a_from, a_to), (b_from, b_to)) = (range(a), range(b));
        // The tolerance covers rounding to a hundredth of a pixel.
        a_from + 0.05 < b_to && b_from + 0.05 < a_to
    })
}
