//! Documentation that comes from tables agrees with them, and what the
//! compatibility matrix names exists.
//!
//! `MILLSTREAM_REGENERATE=1 cargo test --test docs` writes the generated parts.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;

use millstream::model::config;
use millstream::wire::ApiKey;

/// What stands before the generated reference.
const CONFIGURATION_HEAD: &str = "\
# Configuration

Generated from the table in `src/model/config`, as `millstream configs` prints it; the test
`tests/docs.rs` compares. How a file and the command line set keys is in
[operations](operations.md#configuration).

";

/// Lines of the Kafka checklist that the matrix must speak of.
fn checklist_lines() -> BTreeSet<u32> {
    (1..=62).chain(103..=111).collect()
}

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn read(name: &str) -> String {
    std::fs::read_to_string(path(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// The matrix of APIs and versions, as a Markdown table.
fn apis() -> String {
    let mut out = String::from("| Key | API | Advertised | Served |\n|---|---|---|---|\n");
    for facts in ApiKey::ALL {
        let (Some(advertised), Some(served)) = (facts.advertised, facts.served) else { continue };
        let _ = writeln!(
            out,
            "| {} | {} | {}-{} | {}-{} |",
            facts.key.code(),
            facts.name,
            advertised.min,
            advertised.max,
            served.min,
            served.max
        );
    }
    out
}

/// `text` with `part` between the markers of this name.
fn with_part(text: &str, name: &str, part: &str) -> String {
    let (begin, end) = (format!("<!-- generated: {name} -->\n"), "<!-- end -->");
    let (before, rest) =
        text.split_once(&begin).unwrap_or_else(|| panic!("no marker for {name} in the text"));
    let (_, after) = rest.split_once(end).unwrap_or_else(|| panic!("{name} has no end marker"));
    format!("{before}{begin}{part}{end}{after}")
}

#[test]
fn generated_parts_are_current() {
    let compat = read("docs/kafka-compat.md");
    let compat = with_part(&compat, "apis", &apis());
    let files = [
        ("docs/configuration.md", format!("{CONFIGURATION_HEAD}{}", config::reference())),
        ("docs/kafka-compat.md", with_part(&compat, "configs", &config::matrix())),
    ];
    let regenerate = std::env::var_os("MILLSTREAM_REGENERATE").is_some();
    for (name, want) in files {
        if regenerate {
            std::fs::write(path(name), &want).expect("the source tree is writable");
        }
        assert!(
            read(name) == want,
            "{name} is not what the tables say; run: MILLSTREAM_REGENERATE=1 cargo test --test docs"
        );
    }
    let replaced = with_part("a\n<!-- generated: x -->\nold\n<!-- end -->\nb", "x", "new\n");
    assert_eq!(replaced, "a\n<!-- generated: x -->\nnew\n<!-- end -->\nb");
}

/// Every `file::name` in backticks.
fn named_tests(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let quoted = text.split('`').skip(1).step_by(2);
    quoted.filter_map(|word| word.split_once("::")).filter(|(file, _)| file.contains('/'))
}

/// Whether a source text has a function of this name, or one that a macro
/// makes of `name: …`.
fn has_function(source: &str, name: &str) -> bool {
    let heads = [format!("fn {name}("), format!("def {name}("), format!("{name}: ")];
    heads.iter().any(|head| source.contains(head))
}

#[test]
fn every_test_that_the_matrix_names_exists() {
    let compat = read("docs/kafka-compat.md");
    let missing: Vec<_> = named_tests(&compat)
        .filter(|(file, name)| !has_function(&read(file), name))
        .map(|(file, name)| format!("{file}::{name}"))
        .collect();
    assert!(missing.is_empty(), "{missing:#?}");
    assert!(named_tests(&compat).count() > 60, "the table was not understood");
    let found: Vec<_> = named_tests("see `a/b.rs::c1_x` and `E::F`").collect();
    assert_eq!(found, [("a/b.rs", "c1_x")]);
    assert!(!has_function("fn c1_x_y() {}", "c1_x"));
}

/// The number in the first of a row's three cells, when the last one says
/// something.
fn row_number(line: &str) -> Option<u32> {
    let cells: Vec<_> = line.strip_prefix("| ")?.strip_suffix(" |")?.split(" | ").collect();
    match cells[..] {
        [number, _, shown] if !shown.trim().is_empty() => number.parse().ok(),
        _ => None,
    }
}

#[test]
fn every_line_of_the_checklist_is_in_the_matrix() {
    let compat = read("docs/kafka-compat.md");
    let rows: BTreeSet<u32> = compat.lines().filter_map(row_number).collect();
    let missing: Vec<_> = checklist_lines().difference(&rows).copied().collect();
    assert!(missing.is_empty(), "no row for {missing:?}");
    assert!(!compat.contains("no test yet"), "a line that applies needs its test");
    assert_eq!(row_number("| 7 | what | `a/b.rs::c7_x` |"), Some(7));
    assert_eq!(row_number("| 7 | API | 0-1 | 0-1 |"), None);
}
