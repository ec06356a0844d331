//! Our schema table against the message definitions that Kafka's clients jar
//! carries: every fact of every field that we have must be theirs.

use std::path::PathBuf;

use serde_json::Value;

use super::schema::{self, Api, Field, Struct, Type, Versions};

fn folder() -> PathBuf {
    let folder = schema::root().join("tests/.cache/kafka-clients-4.4.0/common/message");
    assert!(
        folder.is_dir(),
        "{} is not there: run tests/wire/fetch-kafka-clients.sh once (needs mvn, a JDK, network)",
        folder.display()
    );
    folder
}

/// JSON after removal of the comment lines that Kafka's files have.
fn load(name: &str) -> Value {
    let path = folder().join(format!("{name}.json"));
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let plain: Vec<&str> =
        text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    serde_json::from_str(&plain.join("\n"))
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn snake_case(name: &str) -> String {
    let mut out = String::new();
    for (index, character) in name.char_indices() {
        let after_lower =
            name[..index].ends_with(|last: char| last.is_lowercase() || last.is_ascii_digit());
        if character.is_uppercase() && after_lower {
            out.push('_');
        }
        out.extend(character.to_lowercase());
    }
    out
}

/// Kafka's version range, clipped to the versions around it.
fn range(text: &str, within: Versions) -> Option<Versions> {
    if text == "none" {
        return None;
    }
    let number = |text: &str| text.parse::<i16>().expect("a version");
    let (min, max) = match text.strip_suffix('+') {
        Some(min) => (number(min), i16::MAX),
        None => text
            .split_once('-')
            .map_or_else(|| (number(text), number(text)), |(min, max)| (number(min), number(max))),
    };
    let clipped = Versions { min: min.max(within.min), max: max.min(within.max) };
    (clipped.min <= clipped.max).then_some(clipped)
}

/// One line per field, depth first, with every fact that is on the wire.
fn flatten_ours(item: &Struct, path: &str, out: &mut Vec<String>) {
    for field in &item.fields {
        let path = format!("{path}/{}", field.name);
        let (ty, inner) = our_type(&field.ty);
        out.push(line(&path, field, &ty, our_default(field)));
        if let Some(inner) = inner {
            flatten_ours(inner, &path, out);
        }
    }
}

fn line(path: &str, field: &Field, ty: &str, default: String) -> String {
    format!(
        "{path} {ty} versions {:?} null {:?} default {default} tag {:?} ignorable {}",
        field.versions, field.nullable, field.tag, field.ignorable
    )
}

fn our_type(ty: &Type) -> (String, Option<&Struct>) {
    match ty {
        Type::Struct(inner) => ("struct".into(), Some(inner)),
        Type::Array(element) => {
            let (name, inner) = our_type(element);
            (format!("[]{name}"), inner)
        }
        other => (format!("{other:?}").to_lowercase(), None),
    }
}

fn our_default(field: &Field) -> String {
    normal_default(field.default.as_deref())
}

fn normal_default(text: Option<&str>) -> String {
    match text.unwrap_or("") {
        "" | "0" | "false" => "zero".into(),
        text => match text.strip_prefix("0x") {
            Some(digits) => i64::from_str_radix(digits, 16).expect("hexadecimal").to_string(),
            None => text.to_owned(),
        },
    }
}

fn flatten_theirs(
    fields: &Value,
    commons: &Value,
    within: Versions,
    path: &str,
    out: &mut Vec<String>,
) {
    for json in fields.as_array().expect("fields are a list") {
        let text = |name: &str| json.get(name).and_then(Value::as_str);
        let name = snake_case(text("name").expect("every field has a name"));
        let path = format!("{path}/{name}");
        // Fields of versions that the message no longer has are not ours to know.
        let Some(versions) = range(text("versions").expect("versions"), within) else { continue };
        let nullable = text("nullableVersions").and_then(|text| range(text, versions));
        let tag = json.get("tag").and_then(Value::as_u64).map(|tag| tag as u32);
        if let Some(tagged) = text("taggedVersions") {
            assert_eq!(range(tagged, within), Some(versions), "{path}: tagged in part only");
        }
        let kafka_type = text("type").expect("type");
        let (arrays, element) = match kafka_type.strip_prefix("[]") {
            Some(element) => ("[]", element),
            None => ("", kafka_type),
        };
        let is_struct = element.starts_with(char::is_uppercase);
        let ty = format!("{arrays}{}", if is_struct { "struct" } else { element });
        let default = match json.get("default") {
            None => normal_default(None),
            Some(Value::String(text)) => normal_default(Some(text)),
            Some(other) => normal_default(Some(&other.to_string())),
        };
        let ignorable = json.get("ignorable").is_some_and(|value| {
            value.as_bool().unwrap_or(false) || value.as_str() == Some("true")
        });
        let field =
            Field { name, versions, ty: Type::Bool, nullable, default: None, tag, ignorable };
        out.push(line(&path, &field, &ty, default));
        if is_struct {
            let inner = json.get("fields").unwrap_or_else(|| {
                commons
                    .as_array()
                    .and_then(|all| all.iter().find(|common| common["name"] == element))
                    .map(|common| &common["fields"])
                    .unwrap_or_else(|| panic!("{path}: no fields for {element}"))
            });
            flatten_theirs(inner, commons, versions, &path, out);
        }
    }
}

fn compare(api: &Api, item: &Struct) {
    let json = load(&item.name);
    assert_eq!(json["apiKey"].as_i64(), Some(i64::from(api.key)), "{}", item.name);
    let every = Versions { min: 0, max: i16::MAX };
    let valid = range(json["validVersions"].as_str().expect("versions"), every);
    assert_eq!(valid, Some(api.versions), "{}: valid versions", item.name);
    let flexible = range(json["flexibleVersions"].as_str().expect("versions"), every);
    assert_eq!(flexible.map(|range| range.min), Some(api.flexible_from), "{}", item.name);
    if json["latestVersionUnstable"].as_bool() == Some(true) {
        let served = api.served.map_or(-1, |served| served.max);
        assert!(served < api.versions.max, "{}: the newest version is not stable", item.name);
    }
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    flatten_ours(item, "", &mut ours);
    flatten_theirs(&json["fields"], &json["commonStructs"], api.versions, "", &mut theirs);
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert_eq!(ours, theirs, "{}: our field and Kafka's", item.name);
    }
    assert_eq!(ours.len(), theirs.len(), "{}: number of fields", item.name);
}

#[test]
fn the_schema_says_what_kafka_says() {
    for api in schema::load() {
        compare(&api, &api.request);
        compare(&api, &api.response);
    }
}

#[test]
fn the_cache_holds_the_definitions_of_4_4() {
    let count = std::fs::read_dir(folder())
        .expect("checked to be there")
        .filter(|entry| {
            let path = entry.as_ref().expect("readable folder").path();
            path.extension().is_some_and(|suffix| suffix == "json")
        })
        .count();
    assert_eq!(count, 203, "message definitions in the clients jar of Kafka 4.4.0");
}

#[test]
fn the_headers_are_as_we_write_them_by_hand() {
    let names = |message: &str| -> Vec<String> {
        load(message)["fields"]
            .as_array()
            .expect("fields")
            .iter()
            .map(|field| {
                format!("{} {} {}", field["name"], field["type"], field["flexibleVersions"])
            })
            .collect()
    };
    assert_eq!(
        names("RequestHeader"),
        [
            r#""RequestApiKey" "int16" null"#,
            r#""RequestApiVersion" "int16" null"#,
            r#""CorrelationId" "int32" null"#,
            r#""ClientId" "string" "none""#,
        ]
    );
    assert_eq!(names("ResponseHeader"), [r#""CorrelationId" "int32" null"#]);
}
