//! Turns the schema table into the text of `src/wire/generated/*.rs`.

use std::fmt::Write as _;

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

fn ident(name: &str) -> String {
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
fn differs(field: &Field) -> String {
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
fn condition(versions: Versions, within: Versions) -> String {
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

fn functions(out: &mut String, item: &Struct, visibility: &str) {
    let top = visibility.is_empty();
    let doc = |text: &str| if top { String::new() } else { format!("/// {text}\n") };
    let check = if top { "Self::check_version(version)?;\n" } else { "" };
    let _ = write!(
        out,
        "{}{visibility}fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {{\n\
         {check}let flexible = version >= FLEXIBLE_FROM;\nlet mut message = Self::default();\n",
        doc("Reads the fields that `version` has; the others keep their defaults."),
    );
    for field in item.fields.iter().filter(|field| field.tag.is_none()) {
        read_field(out, item, field);
    }
    read_tags(out, item);
    let _ = write!(
        out,
        "Ok(message)\n}}\n\n{}{visibility}fn write(&self, writer: &mut Writer<'_>, version: i16) -> Result<(), WireError> {{\n\
         {check}let flexible = version >= FLEXIBLE_FROM;\n",
        doc("Appends the fields that `version` has."),
    );
    for field in item.fields.iter().filter(|field| field.tag.is_none()) {
        write_field(out, item, field);
    }
    write_tags(out, item);
    let _ = write!(
        out,
        "Ok(())\n}}\n\n{}{visibility}fn size(&self, version: i16) -> usize {{\n\
         let flexible = version >= FLEXIBLE_FROM;\nlet mut size = 0;\n",
        doc("Bytes that `write` appends for `version` when it succeeds."),
    );
    for field in item.fields.iter().filter(|field| field.tag.is_none()) {
        let add = format!("size += {};\n", size_of(field));
        guarded(out, &condition(field.versions, item.versions), &add);
    }
    size_tags(out, item);
    out.push_str("size\n}\n");
}

fn guarded(out: &mut String, condition: &str, body: &str) {
    if condition.is_empty() {
        out.push_str(body);
    } else {
        let _ = write!(out, "if {condition} {{\n{body}}}\n");
    }
}

fn path(item: &Struct, field: &Field) -> String {
    format!("\"{}.{}\"", item.name, field.name)
}

fn read_plain(ty: &Type, path: &str) -> String {
    match ty {
        Type::Bool => "reader.bool()".into(),
        Type::Int8 => "reader.int8()".into(),
        Type::Int16 => "reader.int16()".into(),
        Type::Uint16 => "reader.uint16()".into(),
        Type::Int32 => "reader.int32()".into(),
        Type::Int64 => "reader.int64()".into(),
        Type::Float64 => "reader.float64()".into(),
        Type::Uuid => "reader.uuid()".into(),
        Type::String => format!("reader.string(flexible, {path}, version)"),
        Type::Bytes | Type::Records => format!("reader.bytes(flexible, {path}, version)"),
        Type::Struct(inner) => format!("{}::read(reader, version)", inner.name),
        Type::Array(element) => format!(
            "reader.array(flexible, {}, {path}, version, |reader| {})",
            element_min(element),
            read_plain(element, path)
        ),
    }
}

fn read_nullable(ty: &Type, path: &str) -> String {
    match ty {
        Type::String => "reader.nullable_string(flexible)".into(),
        Type::Bytes | Type::Records => "reader.nullable_bytes(flexible)".into(),
        Type::Struct(inner) => format!(
            "if reader.present()? {{ Some({}::read(reader, version)?) }} else {{ None }}",
            inner.name
        ),
        Type::Array(element) => format!(
            "reader.nullable_array(flexible, {}, |reader| {})",
            element_min(element),
            read_plain(element, path)
        ),
        other => panic!("{other:?} cannot be null"),
    }
}

/// Least size of an array element, as a Rust expression.
fn element_min(ty: &Type) -> String {
    match ty {
        Type::Struct(inner) => format!("{}::SIZE_MIN", inner.name),
        ty => plain_min(ty, true).to_string(),
    }
}

fn plain_min(ty: &Type, flexible: bool) -> usize {
    match ty {
        Type::Bool | Type::Int8 => 1,
        Type::Int16 | Type::Uint16 => 2,
        Type::Int32 => 4,
        Type::Int64 | Type::Float64 => 8,
        Type::Uuid => 16,
        Type::String => {
            if flexible {
                1
            } else {
                2
            }
        }
        Type::Bytes | Type::Records | Type::Array(_) => {
            if flexible {
                1
            } else {
                4
            }
        }
        Type::Struct(_) => unreachable!("structures are asked by version"),
    }
}

fn struct_min(api: &Api, item: &Struct, within: Versions) -> usize {
    (within.min..=within.max)
        .map(|version| {
            let flexible = version >= api.flexible_from;
            let fields = item
                .fields
                .iter()
                .filter(|field| field.tag.is_none() && field.versions.contains(version));
            let sum: usize = fields
                .map(|field| match &field.ty {
                    Type::Struct(_) if field.nullable.is_some() => 1,
                    Type::Struct(inner) => {
                        struct_min(api, inner, Versions { min: version, max: version })
                    }
                    ty => plain_min(ty, flexible),
                })
                .sum();
            sum + usize::from(flexible)
        })
        .min()
        .expect("a range is not empty")
}

/// The expression that reads the field, with its `?`.
fn read_expression(item: &Struct, field: &Field) -> String {
    let path = path(item, field);
    let Some(nullable) = field.nullable else {
        return format!("{}?", read_plain(&field.ty, &path));
    };
    let question = |text: String| if text.starts_with("if ") { text } else { format!("{text}?") };
    let may_be_null = question(read_nullable(&field.ty, &path));
    let condition = condition(nullable, field.versions);
    if condition.is_empty() {
        may_be_null
    } else {
        format!(
            "if {condition} {{ {may_be_null} }} else {{ Some({}?) }}",
            read_plain(&field.ty, &path)
        )
    }
}

fn read_field(out: &mut String, item: &Struct, field: &Field) {
    let body = format!("message.{} = {};\n", ident(&field.name), read_expression(item, field));
    guarded(out, &condition(field.versions, item.versions), &body);
}

fn tagged(item: &Struct) -> Vec<&Field> {
    let mut fields: Vec<&Field> = item.fields.iter().filter(|field| field.tag.is_some()).collect();
    fields.sort_by_key(|field| field.tag);
    fields
}

fn read_tags(out: &mut String, item: &Struct) {
    let fields = tagged(item);
    if fields.is_empty() {
        out.push_str("if flexible {\nreader.skip_tagged_fields()?;\n}\n");
        return;
    }
    out.push_str("if flexible {\nreader.tagged_fields(|tag, reader| {\nmatch tag {\n");
    for field in fields {
        let condition = condition(field.versions, item.versions);
        let guard = if condition.is_empty() { String::new() } else { format!(" if {condition}") };
        let _ = writeln!(
            out,
            "{}{guard} => message.{} = {},",
            field.tag.expect("filtered"),
            ident(&field.name),
            read_expression(item, field)
        );
    }
    out.push_str("_ => return Ok(false),\n}\nOk(true)\n})?;\n}\n");
}

fn write_plain(ty: &Type, value: &str, by_reference: bool) -> String {
    let star = if by_reference { "*" } else { "" };
    let borrow = if by_reference { "" } else { "&" };
    match ty {
        Type::Bool => format!("writer.bool({star}{value});\n"),
        Type::Int8 => format!("writer.int8({star}{value});\n"),
        Type::Int16 => format!("writer.int16({star}{value});\n"),
        Type::Uint16 => format!("writer.uint16({star}{value});\n"),
        Type::Int32 => format!("writer.int32({star}{value});\n"),
        Type::Int64 => format!("writer.int64({star}{value});\n"),
        Type::Float64 => format!("writer.float64({star}{value});\n"),
        Type::Uuid => format!("writer.uuid({star}{value});\n"),
        Type::String => format!("writer.string({borrow}{value}, flexible)?;\n"),
        Type::Bytes | Type::Records => format!("writer.bytes({borrow}{value}, flexible)?;\n"),
        Type::Struct(_) => format!("{value}.write(writer, version)?;\n"),
        Type::Array(element) => format!(
            "writer.array_len(Some({value}.len()), flexible)?;\nfor element in {borrow}{value} {{\n{}}}\n",
            write_plain(element, "element", true)
        ),
    }
}

fn write_value(item: &Struct, field: &Field) -> String {
    let place = format!("self.{}", ident(&field.name));
    let Some(nullable) = field.nullable else { return write_plain(&field.ty, &place, false) };
    let mut body = String::new();
    let allowed = condition(nullable, field.versions);
    if !allowed.is_empty() {
        let _ = write!(
            body,
            "if {place}.is_none() && {} {{\nreturn Err(WireError::UnexpectedNull {{ field: {}, version }});\n}}\n",
            negated(&allowed),
            path(item, field)
        );
    }
    body += &match &field.ty {
        Type::String => format!("writer.nullable_string({place}.as_deref(), flexible)?;\n"),
        Type::Bytes | Type::Records => {
            format!("writer.nullable_bytes({place}.as_deref(), flexible)?;\n")
        }
        Type::Struct(_) => format!(
            "writer.present({place}.is_some());\nif let Some(value) = &{place} {{\nvalue.write(writer, version)?;\n}}\n"
        ),
        Type::Array(element) => format!(
            "writer.array_len({place}.as_ref().map(Vec::len), flexible)?;\nfor element in {place}.iter().flatten() {{\n{}}}\n",
            write_plain(element, "element", true)
        ),
        other => panic!("{other:?} cannot be null"),
    };
    body
}

fn negated(condition: &str) -> String {
    if let Some(rest) = condition.strip_prefix("version >= ") {
        format!("version < {rest}")
    } else if let Some(rest) = condition.strip_prefix("version <= ") {
        format!("version > {rest}")
    } else if let Some(rest) = condition.strip_prefix("version == ") {
        format!("version != {rest}")
    } else {
        format!("!{condition}")
    }
}

fn not_in_version(item: &Struct, field: &Field) -> String {
    format!(
        "return Err(WireError::FieldNotInVersion {{ field: {}, version }});\n",
        path(item, field)
    )
}

fn write_field(out: &mut String, item: &Struct, field: &Field) {
    let condition = condition(field.versions, item.versions);
    let body = write_value(item, field);
    if condition.is_empty() || field.ignorable {
        guarded(out, &condition, &body);
    } else {
        let _ = write!(
            out,
            "if {condition} {{\n{body}}} else if {} {{\n{}}}\n",
            differs(field),
            not_in_version(item, field)
        );
    }
}

/// Condition under which a tagged field is written at all.
fn tag_condition(item: &Struct, field: &Field) -> String {
    let condition = condition(field.versions, item.versions);
    if condition.is_empty() { differs(field) } else { format!("{condition} && {}", differs(field)) }
}

fn write_tags(out: &mut String, item: &Struct) {
    let fields = tagged(item);
    for field in fields.iter().filter(|field| !field.ignorable) {
        let condition = condition(field.versions, item.versions);
        if !condition.is_empty() {
            let _ = write!(
                out,
                "if {} && {} {{\n{}}}\n",
                negated(&condition),
                differs(field),
                not_in_version(item, field)
            );
        }
    }
    if fields.is_empty() {
        out.push_str("if flexible {\nwriter.uvarint(0);\n}\n");
        return;
    }
    out.push_str("if flexible {\nlet mut count = 0;\n");
    for field in &fields {
        let _ = write!(out, "if {} {{\ncount += 1;\n}}\n", tag_condition(item, field));
    }
    out.push_str("writer.uvarint(count);\n");
    for field in &fields {
        let _ = write!(
            out,
            "if {} {{\nwriter.tag({}, {})?;\n{}}}\n",
            tag_condition(item, field),
            field.tag.expect("filtered"),
            size_of(field),
            write_value(item, field)
        );
    }
    out.push_str("}\n");
}

fn fixed_size(ty: &Type) -> Option<usize> {
    match ty {
        Type::String | Type::Bytes | Type::Records | Type::Struct(_) | Type::Array(_) => None,
        ty => Some(plain_min(ty, true)),
    }
}

fn elements_size(place: &str, iterator: &str, count: &str, element: &Type) -> String {
    match (fixed_size(element), element) {
        (Some(1), _) => count.to_owned(),
        (Some(size), _) => format!("{size} * {count}"),
        (None, Type::String) => {
            format!(
                "{place}.{iterator}.map(|element| string_size(Some(element.len()), flexible)).sum::<usize>()"
            )
        }
        (None, Type::Bytes | Type::Records) => {
            format!(
                "{place}.{iterator}.map(|element| bytes_size(Some(element.len()), flexible)).sum::<usize>()"
            )
        }
        (None, Type::Struct(_)) => {
            format!("{place}.{iterator}.map(|element| element.size(version)).sum::<usize>()")
        }
        (None, other) => panic!("array of {other:?}"),
    }
}

/// Rust expression for the size of a field that is written.
fn size_of(field: &Field) -> String {
    let place = format!("self.{}", ident(&field.name));
    if let Some(size) = fixed_size(&field.ty) {
        return size.to_string();
    }
    match (&field.ty, field.nullable.is_some()) {
        (Type::String, false) => format!("string_size(Some({place}.len()), flexible)"),
        (Type::String, true) => {
            format!("string_size({place}.as_ref().map(String::len), flexible)")
        }
        (Type::Bytes | Type::Records, false) => {
            format!("bytes_size(Some({place}.len()), flexible)")
        }
        (Type::Bytes | Type::Records, true) => {
            format!("bytes_size({place}.as_ref().map(Bytes::len), flexible)")
        }
        (Type::Struct(_), false) => format!("{place}.size(version)"),
        (Type::Struct(_), true) => {
            format!("1 + {place}.as_ref().map_or(0, |value| value.size(version))")
        }
        (Type::Array(element), false) => format!(
            "array_len_size(Some({place}.len()), flexible) + {}",
            elements_size(&place, "iter()", &format!("{place}.len()"), element)
        ),
        (Type::Array(element), true) => format!(
            "array_len_size({place}.as_ref().map(Vec::len), flexible) + {}",
            elements_size(
                &place,
                "iter().flatten()",
                &format!("{place}.as_ref().map_or(0, Vec::len)"),
                element
            )
        ),
        _ => unreachable!("fixed sizes are above"),
    }
}

fn size_tags(out: &mut String, item: &Struct) {
    let fields = tagged(item);
    if fields.is_empty() {
        out.push_str("size += usize::from(flexible);\n");
        return;
    }
    out.push_str("if flexible {\nlet mut count = 0;\n");
    for field in fields {
        let _ = write!(
            out,
            "if {} {{\ncount += 1;\nsize += tagged_size({}, {});\n}}\n",
            tag_condition(item, field),
            field.tag.expect("filtered"),
            size_of(field)
        );
    }
    out.push_str("size += uvarint_size(count);\n}\n");
}
