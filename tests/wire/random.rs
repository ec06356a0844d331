//! A second encoder, driven by the schema at run time: random bytes of any
//! message at any version, which the generated codec must read and write
//! back unchanged.
//!
//! Each message comes in two forms, with and without tagged fields that no
//! schema knows: reading the second must give the first.

use super::schema::{Api, Field, Struct, Type};

/// Small deterministic generator (splitmix64), so that one number replays a case.
#[derive(Clone, Debug)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn chance(&mut self, one_in: usize) -> bool {
        self.below(one_in) == 0
    }
}

/// The two forms of one random message.
#[derive(Clone, Default, Debug)]
pub(crate) struct Forms {
    /// As our encoder writes it.
    pub(crate) clean: Vec<u8>,
    /// The same with unknown tagged fields.
    pub(crate) dirty: Vec<u8>,
}

impl Forms {
    fn put(&mut self, bytes: &[u8]) {
        self.clean.extend_from_slice(bytes);
        self.dirty.extend_from_slice(bytes);
    }

    fn append(&mut self, other: &Self) {
        self.clean.extend_from_slice(&other.clean);
        self.dirty.extend_from_slice(&other.dirty);
    }

    fn put_tag(&mut self, tag: u32, payload: &Self) {
        for (out, payload) in [(&mut self.clean, &payload.clean), (&mut self.dirty, &payload.dirty)]
        {
            uvarint(out, tag as usize);
            uvarint(out, payload.len());
            out.extend_from_slice(payload);
        }
    }
}

fn uvarint(out: &mut Vec<u8>, mut value: usize) {
    while value > 0x7f {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// A random message of `api` at `version`.
pub(crate) fn message(random: &mut Random, api: &Api, item: &Struct, version: i16) -> Forms {
    let mut forms = Forms::default();
    let flexible = version >= api.flexible_from;
    Maker { random, version, flexible }.structure(&mut forms, item, false);
    forms
}

struct Maker<'r> {
    random: &'r mut Random,
    version: i16,
    flexible: bool,
}

impl Maker<'_> {
    /// `distinct`: must differ from the structure's default.
    fn structure(&mut self, out: &mut Forms, item: &Struct, distinct: bool) {
        let mut distinct = distinct;
        let present: Vec<&Field> =
            item.fields.iter().filter(|field| field.versions.contains(self.version)).collect();
        for field in present.iter().filter(|field| field.tag.is_none()) {
            self.field(out, field, distinct);
            distinct = false;
        }
        if !self.flexible {
            return;
        }
        let mut tagged: Vec<(u32, Forms)> = Vec::new();
        for field in present {
            if let Some(tag) = field.tag.filter(|_| self.random.chance(2)) {
                let mut payload = Forms::default();
                self.field(&mut payload, field, true);
                tagged.push((tag, payload));
            }
        }
        tagged.sort_by_key(|(tag, _)| *tag);
        let unknown = if self.random.chance(3) { 1 + self.random.below(3) } else { 0 };
        uvarint(&mut out.clean, tagged.len());
        uvarint(&mut out.dirty, tagged.len() + unknown);
        for (tag, payload) in &tagged {
            out.put_tag(*tag, payload);
        }
        for number in 0..unknown {
            uvarint(&mut out.dirty, 1000 + number);
            let length = self.random.below(200);
            uvarint(&mut out.dirty, length);
            out.dirty.extend(std::iter::repeat_n(0xff, length));
        }
    }

    fn field(&mut self, out: &mut Forms, field: &Field, distinct: bool) {
        let may_be_null = field.nullable.is_some_and(|range| range.contains(self.version));
        let null_is_default = field.default.as_deref() == Some("null") || field.ty == Type::Records;
        if may_be_null && self.random.chance(3) && !(distinct && null_is_default) {
            let null: &[u8] = match (&field.ty, self.flexible) {
                (Type::Struct(_), _) => &[0xff],
                (_, true) => &[0],
                (Type::String, false) => &[0xff; 2],
                (_, false) => &[0xff; 4],
            };
            return out.put(null);
        }
        if let (Type::Struct(_), true) = (&field.ty, may_be_null) {
            out.put(&[1]);
        }
        self.value(out, &field.ty, field.default.as_deref(), distinct);
    }

    fn length(&mut self, out: &mut Forms, length: usize, is_string: bool) {
        if self.flexible {
            let mut bytes = Vec::new();
            uvarint(&mut bytes, length + 1);
            out.put(&bytes);
        } else if is_string {
            out.put(&(length as i16).to_be_bytes());
        } else {
            out.put(&(length as i32).to_be_bytes());
        }
    }

    fn number(&mut self, default: Option<&str>, distinct: bool) -> i64 {
        let value = match self.random.below(6) {
            0 => 0,
            1 => -1,
            2 => i64::MAX,
            3 => i64::MIN,
            _ => self.random.next().cast_signed(),
        };
        let default: i64 = default.map_or(0, |text| text.parse().expect("a number"));
        // Odd offsets keep the low bytes apart too, whatever the width.
        if distinct { default.wrapping_add(1 + (value & 0x3e)) } else { value }
    }

    fn value(&mut self, out: &mut Forms, ty: &Type, default: Option<&str>, distinct: bool) {
        match ty {
            Type::Bool => {
                let value = if distinct { default != Some("true") } else { self.random.chance(2) };
                out.put(&[u8::from(value)]);
            }
            Type::Int8 => out.put(&(self.number(default, distinct) as i8).to_be_bytes()),
            Type::Int16 => out.put(&(self.number(default, distinct) as i16).to_be_bytes()),
            Type::Uint16 => out.put(&(self.number(default, distinct) as u16).to_be_bytes()),
            Type::Int32 => out.put(&(self.number(default, distinct) as i32).to_be_bytes()),
            Type::Int64 => out.put(&self.number(default, distinct).to_be_bytes()),
            Type::Float64 => {
                let value = self.random.below(1000) as f64 + if distinct { 0.5 } else { 0.0 };
                out.put(&value.to_be_bytes());
            }
            Type::Uuid => {
                let mut id = [0; 16];
                if distinct || !self.random.chance(4) {
                    id[..8].copy_from_slice(&(self.random.next() | 1).to_be_bytes());
                    id[8..].copy_from_slice(&self.random.next().to_be_bytes());
                }
                out.put(&id);
            }
            Type::String => self.string(out, distinct),
            Type::Bytes | Type::Records => {
                let length = self.random.below(300).max(usize::from(distinct));
                self.length(out, length, false);
                let bytes: Vec<u8> = (0..length).map(|_| self.random.next() as u8).collect();
                out.put(&bytes);
            }
            Type::Struct(inner) => self.structure(out, inner, distinct),
            Type::Array(element) => {
                let count = match self.random.below(12) {
                    0 if matches!(**element, Type::Int32 | Type::String) => 130,
                    other => other % 4,
                };
                let count = count.max(usize::from(distinct));
                self.length(out, count, false);
                for _ in 0..count {
                    let mut one = Forms::default();
                    self.value(&mut one, element, None, false);
                    out.append(&one);
                }
            }
        }
    }

    fn string(&mut self, out: &mut Forms, distinct: bool) {
        const CHARACTERS: [char; 8] = ['a', 'Z', '0', '.', 'é', '€', '😀', '\0'];
        let count = match self.random.below(10) {
            0 => 0,
            1 => 200,
            other => other,
        };
        let text: String = (0..count.max(usize::from(distinct)))
            .map(|_| CHARACTERS[self.random.below(CHARACTERS.len())])
            .collect();
        self.length(out, text.len(), true);
        out.put(text.as_bytes());
    }
}
