//! Reads Prometheus text exposition, strictly: what a scraper would only warn about is an
//! error here.

use std::collections::{BTreeMap, BTreeSet};

/// Label values by name.
pub type Labels = BTreeMap<String, String>;

/// The samples of a page by name and labels.
#[derive(Debug, Default)]
pub struct Page {
    pub samples: BTreeMap<(String, Labels), f64>,
    pub kinds: BTreeMap<String, String>,
}

impl Page {
    /// The sample with a name and exactly these labels, besides `device`.
    pub fn value(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let labels: Labels = labels
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        match self.samples.get(&(name.to_owned(), labels.clone())) {
            Some(value) => *value,
            None => panic!("no sample {name} {labels:?}"),
        }
    }

    /// Samples of one name.
    pub fn of(&self, name: &str) -> usize {
        self.samples
            .keys()
            .filter(|(other, _)| other == name)
            .count()
    }
}

/// Reads a page; panics where it breaks the format or the naming rules.
pub fn parse(text: &str) -> Page {
    assert!(text.ends_with('\n'), "no line feed at the end");
    let mut page = Page::default();
    let mut helped = BTreeSet::new();
    let mut current = String::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').expect("a help text");
            assert!(help.ends_with('.'), "{line}");
            assert!(helped.insert(name.to_owned()), "{name} comes twice");
            continue;
        }
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').expect("a type");
            assert!(helped.contains(name), "{name} has no help");
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
            assert!(kind == "counter" || kind == "gauge", "{line}");
            page.kinds.insert(name.to_owned(), kind.to_owned());
            current = name.to_owned();
            continue;
        }
        let (name, labels, value) = sample(line);
        assert_eq!(name, current, "{line}");
        assert!(
            name.chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'),
            "{line}"
        );
        let before = page.samples.insert((name, labels), value);
        assert!(before.is_none(), "{line} comes twice");
    }
    page
}

fn sample(line: &str) -> (String, Labels, f64) {
    let end = line.find(['{', ' ']).expect("a value");
    let (name, mut rest) = line.split_at(end);
    let mut labels = Labels::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        loop {
            let (label, after) = rest.split_once("=\"").expect("a label");
            let mut value = String::new();
            let mut characters = after.char_indices();
            let end = loop {
                match characters.next().expect("the end of a label") {
                    (at, '"') => break at,
                    (_, '\\') => match characters.next().expect("an escape").1 {
                        'n' => value.push('\n'),
                        other => value.push(other),
                    },
                    (_, other) => value.push(other),
                }
            };
            assert!(labels.insert(label.to_owned(), value).is_none(), "{line}");
            rest = &after[end + 1..];
            match rest.strip_prefix(',') {
                Some(more) => rest = more,
                None => break,
            }
        }
        rest = rest.strip_prefix('}').expect("a brace");
    }
    let value = rest.strip_prefix(' ').expect("a space").parse();
    (name.to_owned(), labels, value.expect("a number"))
}
