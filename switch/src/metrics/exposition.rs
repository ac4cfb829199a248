//! The text format of Prometheus, version 0.0.4
//! (<https://prometheus.io/docs/instrumenting/exposition_formats/>).

use std::fmt::Write;

/// What the number of a family does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Only grows, but for a restart.
    Counter,
    /// Goes up and down.
    Gauge,
}

/// One number with its labels.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Name and value of each label, in order.
    pub labels: Vec<(&'static str, String)>,
    pub value: f64,
}

/// All numbers of one name.
#[derive(Clone, Debug, PartialEq)]
pub struct Family {
    /// Name; a counter's ends in `_total`.
    pub name: &'static str,
    /// What it says, one line.
    pub help: &'static str,
    pub kind: Kind,
    pub samples: Vec<Sample>,
}

impl Family {
    /// A family without numbers yet.
    pub fn new(kind: Kind, name: &'static str, help: &'static str) -> Self {
        Self {
            name,
            help,
            kind,
            samples: Vec::new(),
        }
    }

    pub fn add(&mut self, labels: &[(&'static str, &str)], value: f64) {
        let labels = labels.iter();
        self.samples.push(Sample {
            labels: labels
                .map(|(name, value)| (*name, (*value).to_owned()))
                .collect(),
            value,
        });
    }
}

/// Families on their way to being written; those of one name become one.
#[derive(Debug, Default)]
pub struct Exposition {
    families: Vec<Family>,
}

impl Exposition {
    /// Adds families; samples of a name that is there already join it, as the format wants
    /// all lines of a name together.
    pub fn extend(&mut self, families: impl IntoIterator<Item = Family>) {
        for family in families {
            let known = self.families.iter_mut();
            match known.into_iter().find(|known| known.name == family.name) {
                Some(known) => known.samples.extend(family.samples),
                None => self.families.push(family),
            }
        }
    }

    /// The text. Families without numbers are left out.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for family in &self.families {
            if !family.samples.is_empty() {
                write_family(&mut text, family);
            }
        }
        text
    }
}

fn write_family(text: &mut String, family: &Family) {
    let kind = match family.kind {
        Kind::Counter => "counter",
        Kind::Gauge => "gauge",
    };
    let (name, help) = (family.name, escape(family.help, false));
    // Writing to a string cannot fail.
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    for sample in &family.samples {
        text.push_str(name);
        for (index, (label, value)) in sample.labels.iter().enumerate() {
            let open = if index == 0 { '{' } else { ',' };
            let _ = write!(text, "{open}{label}=\"{}\"", escape(value, true));
        }
        if !sample.labels.is_empty() {
            text.push('}');
        }
        let _ = writeln!(text, " {}", sample.value);
    }
}

/// Backslash and line feed, in labels also the quotation mark.
fn escape(text: &str, quotes: bool) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\\' => escaped.push_str("\\\\"),
            '\n' => escaped.push_str("\\n"),
            '"' if quotes => escaped.push_str("\\\""),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_of_one_name_are_written_together_and_labels_escaped() {
        let mut exposition = Exposition::default();
        for device in ["1", "a\"\\\n"] {
            let mut frames = Family::new(Kind::Counter, "x_frames_total", "Frames,\nall \\ of it.");
            frames.add(&[("device", device), ("port", "3")], 7.0);
            let mut depth = Family::new(Kind::Gauge, "x_depth", "Depth.");
            depth.add(&[], 0.5);
            exposition.extend([frames, depth, Family::new(Kind::Gauge, "x_none", "None.")]);
        }
        assert_eq!(
            exposition.text(),
            "# HELP x_frames_total Frames,\\nall \\\\ of it.\n\
             # TYPE x_frames_total counter\n\
             x_frames_total{device=\"1\",port=\"3\"} 7\n\
             x_frames_total{device=\"a\\\"\\\\\\n\",port=\"3\"} 7\n\
             # HELP x_depth Depth.\n\
             # TYPE x_depth gauge\n\
             x_depth 0.5\n\
             x_depth 0.5\n"
        );
    }
}
