//! Parser of the schema table in `src/wire/schema/*.txt`.
//!
//! One file per API. Head lines: `api`, `key`, `versions`, `flexible`, and,
//! for an API that the broker answers, `served` (and `advertised` where that
//! differs). Then the sections `request` and `response`, one field a line:
//!
//! ```text
//!   name versions type [null=VERSIONS] [default=VALUE] [tag=N] [ignorable]
//! ```
//!
//! Two spaces of indentation per level. A type is a primitive, `[T]` for an
//! array, or a capitalised structure whose fields follow one level deeper.
//! `9+` means up to the API's newest version. A default is given only where
//! it is not the type's zero; `null` is a value for nullable fields.

use std::path::{Path, PathBuf};

/// A closed range of versions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Versions {
    pub(crate) min: i16,
    pub(crate) max: i16,
}

impl Versions {
    pub(crate) fn contains(self, version: i16) -> bool {
        self.min <= version && version <= self.max
    }

    fn parse(text: &str, newest: i16) -> Option<Self> {
        let (min, max) = match text.strip_suffix('+') {
            Some(min) => (min.parse().ok()?, newest),
            None => match text.split_once('-') {
                Some((min, max)) => (min.parse().ok()?, max.parse().ok()?),
                None => (text.parse().ok()?, text.parse().ok()?),
            },
        };
        (min <= max && max <= newest).then_some(Self { min, max })
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Type {
    Bool,
    Int8,
    Int16,
    Uint16,
    Int32,
    Int64,
    Float64,
    Uuid,
    String,
    Bytes,
    Records,
    Struct(Struct),
    Array(Box<Type>),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Struct {
    pub(crate) name: String,
    pub(crate) fields: Vec<Field>,
    /// Versions at which the structure can occur.
    pub(crate) versions: Versions,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) versions: Versions,
    pub(crate) ty: Type,
    pub(crate) nullable: Option<Versions>,
    pub(crate) default: Option<String>,
    pub(crate) tag: Option<u32>,
    pub(crate) ignorable: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Api {
    pub(crate) name: String,
    pub(crate) key: i16,
    pub(crate) versions: Versions,
    pub(crate) flexible_from: i16,
    pub(crate) served: Option<Versions>,
    pub(crate) advertised: Option<Versions>,
    pub(crate) request: Struct,
    pub(crate) response: Struct,
    /// The schema file's name without its suffix; also the module's name.
    pub(crate) module: String,
}

pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Reads the whole table, lowest key first.
pub(crate) fn load() -> Vec<Api> {
    let folder = root().join("src/wire/schema");
    let mut apis: Vec<Api> = std::fs::read_dir(&folder)
        .expect("the schema folder is part of the tree")
        .map(|entry| entry.expect("readable folder").path())
        .filter(|path| path.extension().is_some_and(|suffix| suffix == "txt"))
        .map(|path| parse_file(&path))
        .collect();
    apis.sort_by_key(|api| api.key);
    apis
}

fn parse_file(path: &Path) -> Api {
    let text = std::fs::read_to_string(path).expect("schema files are UTF-8");
    let module = path.file_stem().expect("a file name").to_string_lossy().into_owned();
    parse(&text, module).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

struct Line<'a> {
    number: usize,
    level: usize,
    words: Vec<&'a str>,
}

/// Parses one schema file.
pub(crate) fn parse(text: &str, module: String) -> Result<Api, String> {
    let lines: Vec<Line<'_>> = text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty() && !line.trim_start().starts_with('#'))
        .map(|(number, line)| Line {
            number: number + 1,
            level: (line.len() - line.trim_start().len()) / 2,
            words: line.split_whitespace().collect(),
        })
        .collect();
    let head = |word: &str| {
        lines
            .iter()
            .find(|line| line.level == 0 && line.words[0] == word && line.words.len() == 2)
            .map(|line| line.words[1])
    };
    let need = |word: &str| head(word).ok_or(format!("no line '{word} VALUE'"));
    let name = need("api")?.to_owned();
    let versions = Versions::parse(need("versions")?, i16::MAX).ok_or("bad versions")?;
    let flexible_from = Versions::parse(need("flexible")?, i16::MAX).ok_or("bad flexible")?.min;
    let served = match head("served") {
        Some(range) => Some(Versions::parse(range, versions.max).ok_or("bad served")?),
        None => None,
    };
    let advertised = match head("advertised") {
        Some(range) => Some(Versions::parse(range, versions.max).ok_or("bad advertised")?),
        None => served,
    };
    let section = |word: &str, suffix: &str| -> Result<Struct, String> {
        let start = lines
            .iter()
            .position(|line| line.level == 0 && line.words == [word])
            .ok_or(format!("no section '{word}'"))?;
        let mut at = start + 1;
        let fields = parse_fields(&lines, &mut at, 1, versions)?;
        Ok(Struct { name: format!("{name}{suffix}"), fields, versions })
    };
    Ok(Api {
        key: need("key")?.parse().map_err(|_| "bad key")?,
        request: section("request", "Request")?,
        response: section("response", "Response")?,
        versions,
        flexible_from,
        served,
        advertised,
        module,
        name,
    })
}

fn parse_fields(
    lines: &[Line<'_>],
    at: &mut usize,
    level: usize,
    within: Versions,
) -> Result<Vec<Field>, String> {
    let mut fields = Vec::new();
    while let Some(line) = lines.get(*at).filter(|line| line.level >= level) {
        let wrong = |what: &str| format!("line {}: {what}", line.number);
        if line.level > level {
            return Err(wrong("indented too far"));
        }
        let [name, versions, ty, flags @ ..] = &line.words[..] else {
            return Err(wrong("a field needs a name, versions and a type"));
        };
        let versions = Versions::parse(versions, within.max)
            .filter(|versions| versions.min >= within.min)
            .ok_or(wrong("versions outside those of the structure around it"))?;
        *at += 1;
        let mut field = Field {
            name: (*name).to_owned(),
            versions,
            ty: Type::Bool,
            nullable: None,
            default: None,
            tag: None,
            ignorable: false,
        };
        for flag in flags {
            match flag.split_once('=') {
                Some(("null", range)) => {
                    field.nullable =
                        Some(Versions::parse(range, versions.max).ok_or(wrong("bad null="))?);
                }
                Some(("default", value)) => field.default = Some(value.to_owned()),
                Some(("tag", tag)) => {
                    field.tag = Some(tag.parse().map_err(|_| wrong("bad tag="))?);
                }
                None if *flag == "ignorable" => field.ignorable = true,
                _ => return Err(wrong(&format!("unknown flag '{flag}'"))),
            }
        }
        field.ty = parse_type(ty, lines, at, level, versions).map_err(|what| wrong(&what))?;
        fields.push(field);
    }
    Ok(fields)
}

fn parse_type(
    text: &str,
    lines: &[Line<'_>],
    at: &mut usize,
    level: usize,
    versions: Versions,
) -> Result<Type, String> {
    if let Some(element) = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return Ok(Type::Array(Box::new(parse_type(element, lines, at, level, versions)?)));
    }
    Ok(match text {
        "bool" => Type::Bool,
        "int8" => Type::Int8,
        "int16" => Type::Int16,
        "uint16" => Type::Uint16,
        "int32" => Type::Int32,
        "int64" => Type::Int64,
        "float64" => Type::Float64,
        "uuid" => Type::Uuid,
        "string" => Type::String,
        "bytes" => Type::Bytes,
        "records" => Type::Records,
        name if name.starts_with(char::is_uppercase) => {
            let fields = parse_fields(lines, at, level + 1, versions)?;
            if fields.is_empty() {
                return Err(format!("structure {name} has no fields"));
            }
            Type::Struct(Struct { name: name.to_owned(), fields, versions })
        }
        other => return Err(format!("unknown type '{other}'")),
    })
}
