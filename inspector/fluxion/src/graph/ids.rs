//! Small numbers that stand for the things of a graph. They are only meaningful for the graph that
//! handed them out.

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub struct $name(pub u32);

        impl $name {
            /// The position in the arena this id points into.
            #[inline]
            pub fn index(self) -> usize {
                self.0 as usize
            }

            /// The id of a position in an arena.
            ///
            /// # Panics
            /// When the position needs more than 32 bits; arenas refuse to grow that far.
            #[inline]
            pub fn from_index(index: usize) -> Self {
                Self(u32::try_from(index).expect("arenas hold fewer than 2^32 entries"))
            }
        }
    };
}

id!(
    /// A vertex; ids count up in order of creation and are never reused.
    VertexId
);
id!(
    /// An edge; ids count up in order of creation and are never reused.
    EdgeId
);
id!(
    /// An interned string.
    Sym
);
id!(
    /// An interned path.
    PathId
);
id!(
    /// The number of a resource type, in order of first use.
    TypeId
);

/// The number of a subsystem; [`Subsystem::CONTAINMENT`] always exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Subsystem(pub u8);

impl Subsystem {
    /// The subsystem every graph has.
    pub const CONTAINMENT: Self = Self(0);
}
