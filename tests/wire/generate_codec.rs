//! The `read`, `write` and `size` functions of one structure, as Rust text.

use std::fmt::Write as _;

use super::generate::{condition, differs, ident};
use super::schema::{Api, Field, Struct, Type, Versions};

pub(crate) fn functions(out: &mut String, item: &Struct, visibility: &str) {
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

pub(crate) fn struct_min(api: &Api, item: &Struct, within: Versions) -> usize {
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
