//! The tree's own rules: layers, cycles, file length, banned words and paths,
//! and links in the documentation. Each rule is a function that is also run
//! against a bad example, so that it is known to be able to fail.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use syn::visit::Visit;

/// Layers from the bottom; siblings of one row never import each other.
const LAYERS: &[&[&str]] = &[
    &["base"],
    &["model"],
    &["record", "wire", "security", "telemetry", "io"],
    &["log"],
    &["partition"],
    &["coordinator", "cluster"],
    &["shard"],
    &["server", "admin"],
    &["broker"],
    &["cli"],
];

/// Hard stop for a source file, in lines before its tests.
const FILE_LINES_MAX: usize = 600;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn tracked(suffixes: &[&str]) -> Vec<PathBuf> {
    let out = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output()
        .expect("git lists the tree (install git)");
    assert!(out.status.success(), "git ls-files failed: run the tests in a checkout");
    String::from_utf8(out.stdout)
        .expect("paths are UTF-8")
        .lines()
        .filter(|path| suffixes.iter().any(|suffix| path.ends_with(suffix)))
        .map(PathBuf::from)
        .filter(|path| root().join(path).is_file())
        .collect()
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|e| panic!("{path:?}: {e}"))
}

fn layer_of(module: &str) -> Option<usize> {
    LAYERS.iter().position(|row| row.contains(&module))
}

/// Every path that starts at the crate root, in imports and in expressions,
/// grouped imports included; test modules are left out.
#[derive(Default)]
struct CratePaths(BTreeSet<Vec<String>>);

impl CratePaths {
    fn tree(&mut self, prefix: &[String], tree: &syn::UseTree) {
        let mut path = prefix.to_vec();
        match tree {
            syn::UseTree::Path(p) => {
                path.push(p.ident.to_string());
                self.tree(&path, &p.tree);
            }
            syn::UseTree::Group(g) => g.items.iter().for_each(|t| self.tree(&path, t)),
            syn::UseTree::Name(n) => {
                path.push(n.ident.to_string());
                self.record(path);
            }
            syn::UseTree::Rename(r) => {
                path.push(r.ident.to_string());
                self.record(path);
            }
            syn::UseTree::Glob(_) => self.record(path),
        }
    }

    fn record(&mut self, path: Vec<String>) {
        if path.first().is_some_and(|first| first == "crate") {
            self.0.insert(path[1..].to_vec());
        }
    }
}

fn is_test(attrs: &[syn::Attribute]) -> bool {
    attrs.iter().any(|attr| {
        attr.path().is_ident("cfg")
            && attr.parse_args::<syn::Ident>().is_ok_and(|ident| ident == "test")
    })
}

impl<'ast> Visit<'ast> for CratePaths {
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if !is_test(&item.attrs) {
            self.tree(&[], &item.tree);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.record(path.segments.iter().map(|s| s.ident.to_string()).collect());
        syn::visit::visit_path(self, path);
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !is_test(&item.attrs) {
            syn::visit::visit_item_mod(self, item);
        }
    }
}

fn crate_paths(source: &str) -> BTreeSet<Vec<String>> {
    let file = syn::parse_file(source).expect("a source file parses");
    let mut paths = CratePaths::default();
    paths.visit_file(&file);
    paths.0
}

fn layer_fault(own: &str, target: &str) -> Option<String> {
    if own == target {
        return None;
    }
    let (from, to) = (layer_of(own)?, layer_of(target)?);
    (to >= from).then(|| format!("layer `{own}` may not import `{target}`"))
}

fn module_of(path: &Path) -> Option<String> {
    let rest = path.strip_prefix("src").ok()?;
    let first = rest.components().next()?.as_os_str().to_str()?;
    Some(first.trim_end_matches(".rs").to_string())
}

fn is_test_file(path: &Path) -> bool {
    let text = path.to_string_lossy();
    text.ends_with("/tests.rs") || text.contains("/tests/")
}

#[test]
fn layers_import_downwards_only() {
    let mut faults = Vec::new();
    for path in tracked(&[".rs"]).iter().filter(|p| p.starts_with("src") && !is_test_file(p)) {
        let own = module_of(path).expect("a file below src");
        if own != "lib" && own != "main" && layer_of(&own).is_none() {
            faults.push(format!("{path:?}: `{own}` is in no layer"));
        }
        for target in crate_paths(&read(path)).iter().filter_map(|p| p.first()) {
            if let Some(fault) = layer_fault(&own, target) {
                faults.push(format!("{path:?}: {fault}"));
            }
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn the_layer_rule_can_fail() {
    let paths = crate_paths("use crate::{model::{Offset, TopicId}, server::Conn as C};");
    let firsts: BTreeSet<_> = paths.iter().map(|p| p[0].as_str()).collect();
    assert_eq!(firsts, BTreeSet::from(["model", "server"]));
    assert!(layer_fault("log", "server").is_some());
    assert!(layer_fault("record", "wire").is_some(), "siblings");
    assert!(layer_fault("server", "log").is_none());
    assert_eq!(crate_paths("fn f() { crate::broker::run() }").len(), 1, "paths in expressions");
    assert!(crate_paths("#[cfg(test)] mod tests { use crate::cli::x; }").is_empty());
}

/// Directory-level cycles inside a layer: `a/b` and `a/c` importing each other.
fn find_cycle(edges: &BTreeMap<String, BTreeSet<String>>) -> Option<Vec<String>> {
    fn walk(
        node: &str,
        edges: &BTreeMap<String, BTreeSet<String>>,
        trail: &mut Vec<String>,
        done: &mut BTreeSet<String>,
    ) -> Option<Vec<String>> {
        if let Some(at) = trail.iter().position(|n| n == node) {
            return Some(trail[at..].to_vec());
        }
        if !done.insert(node.to_string()) {
            return None;
        }
        trail.push(node.to_string());
        for next in edges.get(node).into_iter().flatten() {
            if let Some(cycle) = walk(next, edges, trail, done) {
                return Some(cycle);
            }
        }
        trail.pop();
        None
    }
    let mut done = BTreeSet::new();
    edges.keys().find_map(|node| walk(node, edges, &mut Vec::new(), &mut done))
}

#[test]
fn directories_form_no_cycles() {
    let rust = tracked(&[".rs"]);
    let dirs: BTreeSet<String> = rust
        .iter()
        .filter(|p| p.starts_with("src") && p.ends_with("mod.rs"))
        .filter_map(|p| p.parent())
        .map(|p| p.strip_prefix("src").expect("below src").to_string_lossy().replace('/', "::"))
        .collect();
    let mut edges: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for path in rust.iter().filter(|p| p.starts_with("src") && !is_test_file(p)) {
        let Some(parent) = path.parent().and_then(|p| p.strip_prefix("src").ok()) else { continue };
        let own = parent.to_string_lossy().replace('/', "::");
        for target in crate_paths(&read(path)) {
            let Some(dir) = (1..=target.len())
                .rev()
                .map(|n| target[..n].join("::"))
                .find(|dir| dirs.contains(dir))
            else {
                continue;
            };
            // A parent and its child are one family: only siblings count.
            let family = dir.starts_with(&own) || own.starts_with(&dir);
            if !family {
                edges.entry(own.clone()).or_default().insert(dir);
            }
        }
    }
    assert_eq!(find_cycle(&edges), None);
    let bad = BTreeMap::from([
        ("a".to_string(), BTreeSet::from(["b".to_string()])),
        ("b".to_string(), BTreeSet::from(["a".to_string()])),
    ]);
    assert!(find_cycle(&bad).is_some());
}

fn lines_before_tests(source: &str) -> usize {
    source.lines().take_while(|line| line.trim() != "#[cfg(test)]").count()
}

#[test]
fn files_stay_short() {
    let long: Vec<_> = tracked(&[".rs", ".py", ".sh", ".java"])
        .into_iter()
        .filter(|p| !p.to_string_lossy().contains("/generated/"))
        .filter_map(|p| {
            let lines = lines_before_tests(&read(&p));
            (lines > FILE_LINES_MAX).then_some((p, lines))
        })
        .collect();
    assert!(long.is_empty(), "over {FILE_LINES_MAX} lines: {long:#?}");
    assert_eq!(lines_before_tests("a\nb\n#[cfg(test)]\nc"), 2);
}

/// Words and paths that have no place in the tree, in two parts so that this
/// file does not find itself.
const BANNED: &[(&str, &str)] = &[
    ("to", "do!("),
    ("unimpl", "emented!("),
    ("FIX", "ME"),
    ("TO", "DO"),
    ("XX", "X"),
    ("/wo", "rk/"),
    ("/ro", "ot/"),
    ("/fa", "rm/"),
    ("#[ig", "nore"),
    ("sub", "agent"),
];

fn banned_in(source: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (number, line) in source.lines().enumerate() {
        for (a, b) in BANNED {
            if line.contains(&format!("{a}{b}")) {
                found.push(format!("line {}: {a}{b}", number + 1));
            }
        }
    }
    found
}

#[test]
fn nothing_unfinished_and_no_path_of_one_machine() {
    let mut faults = Vec::new();
    let kinds = [".rs", ".py", ".sh", ".java", ".md", ".toml", ".xml", ".yml", "run", ".txt"];
    for path in tracked(&kinds) {
        if path.ends_with("tests/tidy.rs") {
            continue;
        }
        for fault in banned_in(&read(&path)) {
            faults.push(format!("{path:?} {fault}"));
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
    assert_eq!(banned_in(&format!("x {}{}", "TO", "DO")).len(), 1);
}

#[test]
fn every_source_file_says_what_it_is() {
    let silent: Vec<_> =
        tracked(&[".rs"]).into_iter().filter(|p| !read(p).trim_start().starts_with("//")).collect();
    assert!(silent.is_empty(), "no comment at the head of {silent:#?}");
}

fn links(markdown: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = markdown;
    while let Some(at) = rest.find("](") {
        rest = &rest[at + 2..];
        if let Some(end) = rest.find(')') {
            found.push(rest[..end].to_string());
        }
    }
    found
}

#[test]
fn links_in_the_documentation_lead_somewhere() {
    let mut broken = Vec::new();
    for path in tracked(&[".md"]) {
        let dir = root().join(&path).parent().expect("a file has a folder").to_path_buf();
        for link in links(&read(&path)) {
            let file = link.split('#').next().unwrap_or_default();
            let outside = file.is_empty() || file.contains("://") || file.starts_with("mailto:");
            if !outside && !dir.join(file).exists() {
                broken.push(format!("{path:?}: {link}"));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
    assert_eq!(links("see [a](b.md#c) and [d](e)"), ["b.md#c", "e"]);
}

#[test]
fn the_top_level_holds_what_it_should() {
    let allowed = BTreeSet::from([
        "Cargo.toml",
        "Cargo.lock",
        "README.md",
        "LICENSE",
        "src",
        "benches",
        "perf",
        "tests",
        "docs",
    ]);
    let strange: BTreeSet<String> = tracked(&[""])
        .iter()
        .filter_map(|p| Some(p.components().next()?.as_os_str().to_str()?.to_string()))
        .filter(|name| !name.starts_with('.') && !allowed.contains(name.as_str()))
        .collect();
    assert!(strange.is_empty(), "{strange:?}");
}
