//! Generates `src/wire/generated` from `src/wire/schema`, and fails when what
//! is committed is not what the schema says.
//!
//! `MILLSTREAM_REGENERATE=1 cargo test --test wire_codegen` writes the files.

#[path = "wire/generate.rs"]
mod generate;
#[path = "wire/generate_codec.rs"]
mod generate_codec;
#[path = "wire/schema.rs"]
mod schema;

use std::collections::BTreeSet;
use std::io::Write as _;
use std::process::{Command, Stdio};

/// The text as the project's rustfmt lays it out.
fn formatted(text: &str) -> String {
    let mut rustfmt = Command::new("rustfmt")
        .args(["--edition", "2024", "--config-path"])
        .arg(schema::root().join(".rustfmt.toml"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("rustfmt comes with the toolchain: rustup component add rustfmt");
    rustfmt
        .stdin
        .take()
        .expect("piped above")
        .write_all(text.as_bytes())
        .expect("rustfmt reads its input");
    let output = rustfmt.wait_with_output().expect("rustfmt ends");
    assert!(output.status.success(), "rustfmt refused generated text:\n{text}");
    String::from_utf8(output.stdout).expect("rustfmt writes UTF-8")
}

#[test]
fn committed_output_is_current() {
    let regenerate = std::env::var_os("MILLSTREAM_REGENERATE").is_some();
    let folder = schema::root().join("src/wire/generated");
    let mut names = BTreeSet::new();
    let mut stale = Vec::new();
    for (name, text) in generate::files(&schema::load()) {
        let text = formatted(&text);
        let path = folder.join(&name);
        if std::fs::read_to_string(&path).ok().as_deref() != Some(&text) {
            if regenerate {
                std::fs::write(&path, text).expect("the source tree is writable");
            } else {
                stale.push(name.clone());
            }
        }
        names.insert(name);
    }
    for entry in std::fs::read_dir(&folder).expect("the folder is part of the tree") {
        let path = entry.expect("readable folder").path();
        let name = path.file_name().expect("a file name").to_string_lossy().into_owned();
        if !names.contains(&name) {
            if regenerate {
                std::fs::remove_file(&path).expect("the source tree is writable");
            } else {
                stale.push(name);
            }
        }
    }
    assert!(
        stale.is_empty(),
        "not what src/wire/schema says: {stale:?}; run: \
         MILLSTREAM_REGENERATE=1 cargo test --test wire_codegen"
    );
}
