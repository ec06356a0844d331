//! Turns the schema table into the text of `src/wire/generated/*.rs`.

use std::fmt::Write as _;

use super::generate_codec::{functions, struct_min};
use super::schema::{Api, Field, Struct, Type, Versions};

/// File name and text (before rustfmt) of everything in `generated/`.
pub(crate) fn files(apis: &[Api]) -> Vec<(String, String)> {
    let mut files =
        vec![("mod.rs".to_owned(), module_list(apis)), ("api_key.rs".to_owned(), api_key(apis))];
    files.extend(apis.iter().map(|api| (format!("{}.rs", api.module), api_module(api))));
    files
}

fn module_list(apis: &[Api]) -> String {
    let mut out = String::from(
        "//! One module per API, generated from `src/wire/schema` by\n\
         //! `tests/wire_codegen.rs`. Not to be edited: edit the schema and run\n\
         //! `MILLSTREAM_REGENERATE=1 cargo test --test wire_codegen`.\n\
         //!\n\
         //! The field names are the protocol's, and its documentation is theirs.\n\
         #![allow(missing_docs)]\n\
         #![allow(clippy::field_reassign_with_default)]\n\n\
         mod api_key;\n",
    );
    for api in apis {
        let _ = writeln!(out, "pub mod {};", api.module);
    }
    out.push_str("\npub use api_key::ApiKey;\n\n");
    out.push_str(
        "/// Calls a macro with `(API, module, request, response)` of every API.\n\
         #[doc(hidden)]\n#[macro_export]\nmacro_rules! for_each_api {\n($callback:ident) => {\n$callback! {\n",
    );
    for api in apis {
        let (name, module) = (&api.name, &api.module);
        let _ = writeln!(out, "({name}, {module}, {name}Request, {name}Response)");
    }
    out.push_str("}\n};\n}\n");
    out
}

fn range(versions: Versions) -> String {
    format!("ApiVersionRange {{ min: {}, max: {} }}", versions.min, versions.max)
}

fn optional_range(versions: Option<Versions>) -> String {
    versions.map_or("None".to_owned(), |versions| format!("Some({})", range(versions)))
}

fn api_key(apis: &[Api]) -> String {
    let mut out = String::from(
        "//! The keys of the protocol and their versions. Generated: see `mod.rs`.\n\n\
         use crate::wire::api::{ApiFacts, ApiVersionRange};\n\n\
         /// An API that the codec knows; the number is its key on the wire.\n\
         #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]\n\
         #[repr(i16)]\npub enum ApiKey {\n",
    );
    for api in apis {
        let _ = writeln!(out, "{} = {},", api.name, api.key);
    }
    out.push_str("}\n\nimpl ApiKey {\n/// Every known API, lowest key first.\npub const ALL: &[ApiFacts] = &[\n");
    for api in apis {
        let _ = writeln!(
            out,
            "ApiFacts {{ key: Self::{name}, name: \"{name}\", known: {known}, served: {served}, advertised: {advertised}, flexible_from: {flexible} }},",
            name = api.name,
            known = range(api.versions),
            served = optional_range(api.served),
            advertised = optional_range(api.advertised),
            flexible = api.flexible_from,
        );
    }
    out.push_str(
        "];\n\n/// The number on the wire.\n#[must_use]\npub const fn code(self) -> i16 { self as i16 }\n\n\
         /// The API with this key, when the codec knows it.\n#[must_use]\n\
         pub const fn from_code(code: i16) -> Option<Self> {\nSome(match code {\n",
    );
    for api in apis {
        let _ = writeln!(out, "{} => Self::{},", api.key, api.name);
    }
    out.push_str(
        "_ => return None,\n})\n}\n\n/// What the schema says about it.\n#[inline]\n#[must_use]\n\
         pub const fn facts(self) -> &'static ApiFacts {\nmatch self {\n",
    );
    for (index, api) in apis.iter().enumerate() {
        let _ = writeln!(out, "Self::{} => &Self::ALL[{index}],", api.name);
    }
    out.push_str("}\n}\n}\n");
    out
}

fn api_module(api: &Api) -> String {
    let mut body = String::new();
    for (message, role) in [(&api.request, "Request"), (&api.response, "Response")] {
        message_impl(&mut body, api, message, role);
        nested_structs(&mut body, api, &message.fields);
    }
    let mut out = format!(
        "//! {name} ({key}). Generated from `schema/{module}.txt`: see `mod.rs`.\n\n",
        name = api.name,
        key = api.key,
        module = api.module
    );
    if [": Bytes", "<Bytes>", "Bytes::"].iter().any(|mark| body.contains(mark)) {
        out.push_str("use bytes::Bytes;\n\n");
    }
    out.push_str(
        "use super::ApiKey;\nuse crate::wire::error::WireError;\n\
         use crate::wire::message::{Message, Request, Response};\nuse crate::wire::reader::Reader;\n",
    );
    let helpers: Vec<&str> =
        ["array_len_size", "bytes_size", "string_size", "tagged_size", "uvarint_size"]
            .into_iter()
            .filter(|helper| body.contains(&format!("{helper}(")))
            .collect();
    let _ = writeln!(
        out,
        "use crate::wire::writer::{{{}Writer}};\n",
        helpers.iter().map(|helper| format!("{helper}, ")).collect::<String>()
    );
    let _ = writeln!(
        out,
        "/// First version with tagged fields and compact lengths.\nconst FLEXIBLE_FROM: i16 = {};\n",
        api.flexible_from
    );
    out + &body
}

fn nested_structs(out: &mut String, api: &Api, fields: &[Field]) {
    for field in fields {
        if let Some(inner) = struct_of(&field.ty) {
            definition(out, inner);
            let _ = writeln!(out, "impl {} {{", inner.name);
            if matches!(field.ty, Type::Array(_)) {
                let _ = writeln!(
                    out,
                    "/// The least number of bytes that one takes on the wire.\n\
                     pub const SIZE_MIN: usize = {};\n",
                    struct_min(api, inner, inner.versions)
                );
            }
            functions(out, inner, "pub ");
            out.push_str("}\n\n");
            nested_structs(out, api, &inner.fields);
        }
    }
}

fn struct_of(ty: &Type) -> Option<&Struct> {
    match ty {
        Type::Struct(inner) => Some(inner),
        Type::Array(element) => struct_of(element),
        _ => None,
    }
}

fn message_impl(out: &mut String, api: &Api, message: &Struct, role: &str) {
    definition(out, message);
    let (api_name, name) = (&api.name, &message.name);
    let _ = writeln!(
        out,
        "impl Message for {name} {{\nconst KEY: ApiKey = ApiKey::{api_name};\nconst NAME: &'static str = \"{name}\";\n"
    );
    functions(out, message, "");
    out.push_str("}\n\n");
    if role == "Request" {
        let _ =
            writeln!(out, "impl Request for {name} {{\ntype Response = {api_name}Response;\n}}\n");
    } else {
        let _ = writeln!(out, "impl Response for {name} {{}}\n");
    }
}

fn definition(out: &mut String, item: &Struct) {
    let zero = |field: &Field| {
        let value = default_value(field);
        !value.starts_with("Some")
            && (["0", "0.0", "false", "None", "[0; 16]"].contains(&value.as_str())
                || value.ends_with("::new()")
                || value.ends_with("::default()"))
    };
    let derived = item.fields.iter().all(zero);
    let default = if derived { ", Default" } else { "" };
    let _ =
        writeln!(out, "#[derive(Clone, Debug{default}, PartialEq)]\npub struct {} {{", item.name);
    for field in &item.fields {
        let _ = writeln!(out, "pub {}: {},", ident(&field.name), rust_type(field));
    }
    out.push_str("}\n\n");
    if derived {
        return;
    }
    let _ = writeln!(out, "impl Default for {} {{\nfn default() -> Self {{\nSelf {{", item.name);
    for field in &item.fields {
        let _ = writeln!(out, "{}: {},", ident(&field.name), default_value(field));
    }
    out.push_str("}\n}\n}\n\n");
}

pub(crate) fn ident(name: &str) -> String {
    if matches!(name, "type" | "match" | "move" | "ref") {
        format!("r#{name}")
    } else {
        name.to_owned()
    }
}

fn base_type(ty: &Type) -> String {
    match ty {
        Type::Bool => "bool".into(),
        Type::Int8 => "i8".into(),
        Type::Int16 => "i16".into(),
        Type::Uint16 => "u16".into(),
        Type::Int32 => "i32".into(),
        Type::Int64 => "i64".into(),
        Type::Float64 => "f64".into(),
        Type::Uuid => "[u8; 16]".into(),
        Type::String => "String".into(),
        Type::Bytes | Type::Records => "Bytes".into(),
        Type::Struct(inner) => inner.name.clone(),
        Type::Array(element) => format!("Vec<{}>", base_type(element)),
    }
}

fn rust_type(field: &Field) -> String {
    let base = base_type(&field.ty);
    if field.nullable.is_some() { format!("Option<{base}>") } else { base }
}

/// Whether the default is null: said so, or records, whose default always is.
fn null_default(field: &Field) -> bool {
    field.nullable.is_some()
        && (field.default.as_deref() == Some("null") || field.ty == Type::Records)
}

fn number(ty: &Type, default: Option<&str>) -> String {
    match (ty, default) {
        (Type::Int64, Some("9223372036854775807")) => "i64::MAX".into(),
        (Type::Int32, Some("2147483647")) => "i32::MAX".into(),
        (Type::Int32, Some("-2147483648")) => "i32::MIN".into(),
        (Type::Float64, None) => "0.0".into(),
        (_, Some(value)) => value.into(),
        (_, None) => "0".into(),
    }
}

fn default_value(field: &Field) -> String {
    if null_default(field) {
        return "None".into();
    }
    let value = match &field.ty {
        Type::Bool => field.default.clone().unwrap_or("false".into()),
        Type::Uuid => "[0; 16]".into(),
        Type::String => match field.default.as_deref() {
            None => "String::new()".into(),
            Some(text) => format!("String::from(\"{text}\")"),
        },
        Type::Bytes | Type::Records => "Bytes::new()".into(),
        Type::Struct(inner) => format!("{}::default()", inner.name),
        Type::Array(_) => "Vec::new()".into(),
        ty => number(ty, field.default.as_deref()),
    };
    if field.nullable.is_some() { format!("Some({value})") } else { value }
}

/// Rust expression that is true when the field has not its default value.
pub(crate) fn differs(field: &Field) -> String {
    let place = format!("self.{}", ident(&field.name));
    if null_default(field) {
        return format!("{place}.is_some()");
    }
    let nullable = field.nullable.is_some();
    match &field.ty {
        Type::Bool if field.default.as_deref() == Some("true") => format!("!{place}"),
        Type::Bool => place,
        Type::String if nullable => {
            format!("{place}.as_deref() != Some(\"{}\")", field.default.as_deref().unwrap_or(""))
        }
        Type::String => match field.default.as_deref() {
            None => format!("!{place}.is_empty()"),
            Some(text) => format!("{place} != \"{text}\""),
        },
        Type::Bytes | Type::Records | Type::Array(_) if nullable => {
            format!("!{place}.as_ref().is_some_and(|value| value.is_empty())")
        }
        Type::Bytes | Type::Records | Type::Array(_) => format!("!{place}.is_empty()"),
        _ => format!("{place} != {}", default_value(field)),
    }
}

/// Rust condition for `version` within `versions`, given that it lies within
/// `within`; empty when it always does.
pub(crate) fn condition(versions: Versions, within: Versions) -> String {
    let low = versions.min > within.min;
    let high = versions.max < within.max;
    match (low, high) {
        (false, false) => String::new(),
        (true, false) => format!("version >= {}", versions.min),
        (false, true) => format!("version <= {}", versions.max),
        (true, true) if versions.min == versions.max => format!("version == {}", versions.min),
        (true, true) => format!("({}..={}).contains(&version)", versions.min, versions.max),
    }
}
