//! A row of the table: what a key is and which values it takes.

/// Type of a value, with Kafka's number for it in DescribeConfigs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(i8)]
#[allow(missing_docs, reason = "the names are the documentation")]
pub enum Kind {
    Boolean = 1,
    String = 2,
    Int = 3,
    Short = 4,
    Long = 5,
    Double = 6,
    List = 7,
    Class = 8,
    Password = 9,
}

impl Kind {
    /// The word for it in messages and in the reference.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Boolean => "boolean",
            Self::String => "string",
            Self::Int => "int",
            Self::Short => "short",
            Self::Long => "long",
            Self::Double => "double",
            Self::List => "list",
            Self::Class => "class",
            Self::Password => "password",
        }
    }
}

/// Who should care.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[allow(missing_docs, reason = "the names are the documentation")]
pub enum Importance {
    High,
    Medium,
    Low,
}

/// When a value can change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Update {
    /// Only by starting the broker again.
    ReadOnly,
    /// At run time, on each broker for itself.
    PerBroker,
    /// At run time, for all brokers or for one topic.
    Dynamic,
}

/// Whether a value has the effect that its documentation promises.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// It has.
    Enforced,
    /// Kept and described, but without effect yet.
    Stored,
    /// Kept and described; here the thing it tunes does not exist, and will
    /// not.
    NotApplicable,
}

/// Which values a key takes beyond its type.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Check {
    /// All of the type.
    Any,
    /// Whole numbers from the first to the second, both included.
    Range(i64, i64),
    /// As `Range`, or this one number.
    RangeOr(i64, i64, i64),
    /// Fractions from 0 to 1.
    Fraction,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// One of these words in any case.
    OneOfAnyCase(&'static [&'static str]),
    /// A list of these words.
    ListOf(&'static [&'static str]),
    /// A list of `partition:broker` pairs, or `*`.
    ThrottledReplicas,
    /// Bytes with an optional suffix k, m, g (powers of 1024), at least this.
    Size(u64),
}

/// One configuration key.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Kafka's name, or ours under `millstream.`.
    pub name: &'static str,
    /// Type of its value.
    pub kind: Kind,
    /// Value when nobody sets it; none when it then has none.
    pub default: Option<&'static str>,
    /// Which values it takes.
    pub check: Check,
    /// Who should care.
    pub importance: Importance,
    /// When it can change.
    pub update: Update,
    /// Whether it does what `doc` says.
    pub status: Status,
    /// Topic keys: the broker keys that give the topic's default, the first
    /// one that is set wins; each with the factor from its unit to the topic
    /// key's. Broker keys: the keys that stand in when this one is not set.
    pub synonyms: &'static [(&'static str, i64)],
    /// What it does, in a sentence or two.
    pub doc: &'static str,
}

impl Key {
    /// A row with the commonest answers; the others are set by the functions
    /// below.
    #[must_use]
    pub const fn new(
        name: &'static str,
        kind: Kind,
        default: Option<&'static str>,
        doc: &'static str,
    ) -> Self {
        Self {
            name,
            kind,
            default,
            check: Check::Any,
            importance: Importance::Medium,
            update: Update::ReadOnly,
            status: Status::Stored,
            synonyms: &[],
            doc,
        }
    }

    /// With a check.
    #[must_use]
    pub const fn check(self, check: Check) -> Self {
        Self { check, ..self }
    }

    /// With a range of whole numbers.
    #[must_use]
    pub const fn range(self, low: i64, high: i64) -> Self {
        self.check(Check::Range(low, high))
    }

    /// With a smallest number.
    #[must_use]
    pub const fn at_least(self, low: i64) -> Self {
        self.check(Check::Range(low, i64::MAX))
    }

    /// With an importance.
    #[must_use]
    pub const fn importance(self, importance: Importance) -> Self {
        Self { importance, ..self }
    }

    /// Of high importance.
    #[must_use]
    pub const fn high(self) -> Self {
        self.importance(Importance::High)
    }

    /// Of low importance.
    #[must_use]
    pub const fn low(self) -> Self {
        self.importance(Importance::Low)
    }

    /// Changeable for all brokers, or for a topic.
    #[must_use]
    pub const fn dynamic(self) -> Self {
        Self { update: Update::Dynamic, ..self }
    }

    /// Changeable on each broker.
    #[must_use]
    pub const fn per_broker(self) -> Self {
        Self { update: Update::PerBroker, ..self }
    }

    /// Does what its documentation says.
    #[must_use]
    pub const fn enforced(self) -> Self {
        Self { status: Status::Enforced, ..self }
    }

    /// Tunes something that does not exist here.
    #[must_use]
    pub const fn not_applicable(self) -> Self {
        Self { status: Status::NotApplicable, ..self }
    }

    /// With synonyms of the same unit.
    #[must_use]
    pub const fn synonyms(self, synonyms: &'static [(&'static str, i64)]) -> Self {
        Self { synonyms, ..self }
    }

    /// Whether its value must never be shown.
    #[must_use]
    pub const fn is_sensitive(&self) -> bool {
        matches!(self.kind, Kind::Password)
    }

    /// Whether it cannot change while the broker runs.
    #[must_use]
    pub const fn is_read_only(&self) -> bool {
        matches!(self.update, Update::ReadOnly)
    }
}
